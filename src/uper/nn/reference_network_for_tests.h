#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "uper/nn/parameter_layout.h"

namespace uper {

// The network in plain loops and double precision, one sample at a time, for tests to compare with.
// Walks the list of layers and shares no code with the kernels.
class ReferenceNetwork {
 public:
  explicit ReferenceNetwork(const NetworkSpec& spec) : layout_(spec), spec_(spec) {}

  // The hidden layer [hidden_total] of an observation [height, width, channels], scaled already.
  std::vector<double> Hidden(const std::vector<double>& p, std::vector<double> x) const {
    for (const LayerSpec& layer : layout_.torso()) {
      x = layer.kind == LayerKind::kConvolution ? Convolve(p, layer, x) : Dense(p, layer, x);
    }
    return x;
  }

  // z[k, m] of one action for member k.
  double Output(const std::vector<double>& p, const std::vector<double>& hidden, int action, int k,
                int m) const {
    const LayerSpec& head = layout_.head();
    const int block = action * spec_.members + k;
    double sum = p[head.bias.offset + (spec_.shared_output_bias ? 0 : block * spec_.outputs + m)];
    for (int h = 0; h < spec_.hidden_units; ++h) {
      const std::size_t at = (std::size_t{1} * block * spec_.hidden_units + h) * spec_.outputs + m;
      sum += hidden[(spec_.separate_hidden ? k * spec_.hidden_units : 0) + h] *
             p[head.weights.offset + at];
    }
    return sum;
  }

 private:
  static std::vector<double> Dense(const std::vector<double>& p, const LayerSpec& layer,
                                   const std::vector<double>& x) {
    const int units = layer.outputs();
    std::vector<double> y(units);
    for (int u = 0; u < units; ++u) {
      double sum = p[layer.bias.offset + u];
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += x[i] * p[layer.weights.offset + i * units + u];
      y[u] = std::max(0.0, sum);
    }
    return y;
  }

  static std::vector<double> Convolve(const std::vector<double>& p, const LayerSpec& layer,
                                      const std::vector<double>& x) {
    std::vector<double> y;
    for (int row = 0; row < layer.out.height; ++row) {
      for (int column = 0; column < layer.out.width; ++column) {
        for (int f = 0; f < layer.out.channels; ++f) {
          y.push_back(std::max(0.0, ConvolutionSum(p, layer, x, row, column, f)));
        }
      }
    }
    return y;
  }

  // One filter at one position, before the ReLU.
  static double ConvolutionSum(const std::vector<double>& p, const LayerSpec& layer,
                               const std::vector<double>& x, int row, int column, int filter) {
    const ConvolutionSpec& spec = layer.convolution;
    double sum = p[layer.bias.offset + filter];
    std::size_t tap = layer.weights.offset + filter;
    for (int i = 0; i < spec.kernel; ++i) {
      for (int j = 0; j < spec.kernel; ++j) {
        for (int c = 0; c < layer.in.channels; ++c, tap += spec.filters) {
          const int at_row = row * spec.stride + i;
          const int at_column = column * spec.stride + j;
          sum += p[tap] * x[(at_row * layer.in.width + at_column) * layer.in.channels + c];
        }
      }
    }
    return sum;
  }

  ParameterLayout layout_;
  NetworkSpec spec_;
};

}  // namespace uper
