#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "uper/nn/parameter_layout.h"

namespace uper {

// The network in plain loops and double precision, one sample at a time: what the tests compare
// with. Reads the layouts of parameter_layout.h and shares no code with the kernels.
class NaiveNetwork {
 public:
  explicit NaiveNetwork(const NetworkSpec& spec) : spec_(spec), layout_(spec) {}

  // The hidden layer [hidden_total] of an observation already as [height, width, channels], scaled.
  std::vector<double> Hidden(const std::vector<double>& p, std::vector<double> x) const {
    ImageShape shape{spec_.input.height, spec_.input.width, spec_.input.channels};
    for (std::size_t i = 0; i < spec_.convolutions.size(); ++i) {
      x = Convolve(p, "conv" + std::to_string(i + 1), spec_.convolutions[i], shape, x);
    }
    for (std::size_t i = 0; i < spec_.dense.size(); ++i) {
      x = Layer(p, "dense" + std::to_string(i + 1), spec_.dense[i], x);
    }
    return Layer(p, "hidden", spec_.hidden_total(), x);
  }

  // z[k, m] of one action for member k.
  double Output(const std::vector<double>& p, const std::vector<double>& hidden, int action, int k,
                int m) const {
    const ParameterView& w = layout_.Find("head/w");
    const ParameterView& b = layout_.Find("head/b");
    const int block = action * spec_.members + k;
    double sum = p[b.offset + (spec_.shared_output_bias ? 0 : block * spec_.outputs + m)];
    for (int h = 0; h < spec_.hidden_units; ++h) {
      const std::size_t at = (std::size_t{1} * block * spec_.hidden_units + h) * spec_.outputs + m;
      sum += hidden[(spec_.separate_hidden ? k * spec_.hidden_units : 0) + h] * p[w.offset + at];
    }
    return sum;
  }

 private:
  std::vector<double> Layer(const std::vector<double>& p, const std::string& name, int units,
                            const std::vector<double>& x) const {
    const std::size_t w = layout_.Find(name + "/w").offset;
    const std::size_t b = layout_.Find(name + "/b").offset;
    std::vector<double> y(units);
    for (int u = 0; u < units; ++u) {
      double sum = p[b + u];
      for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * p[w + i * units + u];
      y[u] = std::max(0.0, sum);
    }
    return y;
  }

  std::vector<double> Convolve(const std::vector<double>& p, const std::string& name,
                               const ConvolutionSpec& layer, ImageShape& shape,
                               const std::vector<double>& x) const {
    const ParameterView& w = layout_.Find(name + "/w");
    const ParameterView& b = layout_.Find(name + "/b");
    const ImageShape in = shape;
    shape = {(in.height - layer.kernel) / layer.stride + 1,
             (in.width - layer.kernel) / layer.stride + 1, layer.filters};
    std::vector<double> y;
    for (int row = 0; row < shape.height; ++row) {
      for (int column = 0; column < shape.width; ++column) {
        for (int f = 0; f < layer.filters; ++f) {
          double sum = p[b.offset + f];
          std::size_t tap = w.offset + f;
          for (int i = 0; i < layer.kernel; ++i) {
            for (int j = 0; j < layer.kernel; ++j) {
              for (int c = 0; c < in.channels; ++c, tap += layer.filters) {
                const int at_row = row * layer.stride + i;
                const int at_column = column * layer.stride + j;
                sum += p[tap] * x[(at_row * in.width + at_column) * in.channels + c];
              }
            }
          }
          y.push_back(std::max(0.0, sum));
        }
      }
    }
    return y;
  }

  NetworkSpec spec_;
  ParameterLayout layout_;
};

}  // namespace uper
