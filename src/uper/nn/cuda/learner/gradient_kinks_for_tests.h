#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "uper/nn/learner.h"
#include "uper/nn/parameter_layout.h"

namespace uper::cuda {

// Kinks of the gradient: a ReLU whose input is 0, and two actions with equal values. An update that
// is close to a kink may fall on either side of it by rounding. Computed with plain loops in
// double.
struct Kinks {
  // The smallest input of a ReLU and the smallest lead of a greedy action. Each is relative to the
  // sum of the magnitudes of its terms.
  double relu = 1;
  double greedy = 1;
};

class KinkFinder {
 public:
  KinkFinder(const LearnerSpec& spec, const ParameterLayout& layout)
      : spec_(spec), layout_(layout) {}

  Kinks Find(const LearnerState& state, const LearnerBatch& batch) {
    kinks_ = {};
    const bool categorical = spec_.loss.head == HeadKind::kCategorical;
    for (int b = 0; b < spec_.batch; ++b) {
      Hidden(state.online, Observation(batch.s_tm1, b), true);
      if (categorical) continue;  // their values are not linear, so ties are not searched
      const auto parameters = spec_.loss.double_q ? state.online : state.target;
      FindTies(parameters, Hidden(parameters, Observation(batch.s_t, b), false));
    }
    return kinks_;
  }

 private:
  using Numbers = std::vector<double>;
  struct Sum {
    double value = 0;
    double size = 0;
    void Add(double term) {
      value += term;
      size += std::abs(term);
    }
  };

  // [height, width, channel], scaled.
  Numbers Observation(std::span<const std::byte> all, int b) const {
    const InputSpec& input = spec_.network.input;
    const int cells = input.height * input.width;
    Numbers result;
    for (int cell = 0; cell < cells; ++cell) {
      for (int c = 0; c < input.channels; ++c) {
        const int entry =
            input.layout == InputLayout::kPlanes ? c * cells + cell : cell * input.channels + c;
        const std::size_t at = std::size_t{1} * b * cells * input.channels + entry;
        float value = 0;
        if (input.type == InputType::kUint8) {
          value = static_cast<float>(all[at]);
        } else {
          std::memcpy(&value, all.data() + at * sizeof(float), sizeof(float));
        }
        result.push_back(double{value} * double{input.scale});
      }
    }
    return result;
  }

  double Relu(const Sum& sum, bool watched) {
    if (watched && sum.size > 0)
      kinks_.relu = std::min(kinks_.relu, std::abs(sum.value) / sum.size);
    return std::max(0.0, sum.value);
  }

  Numbers Dense(std::span<const float> p, const LayerSpec& layer, const Numbers& x, bool watched) {
    const float* w = p.data() + layer.weights.offset;
    const float* bias = p.data() + layer.bias.offset;
    const int units = layer.outputs();
    Numbers result;
    for (int u = 0; u < units; ++u) {
      Sum sum;
      sum.Add(double{bias[u]});
      for (std::size_t i = 0; i < x.size(); ++i) sum.Add(x[i] * double{w[i * units + u]});
      result.push_back(Relu(sum, watched));
    }
    return result;
  }

  Numbers Convolution(std::span<const float> p, const LayerSpec& layer, const Numbers& x,
                      bool watched) {
    const ConvolutionSpec& spec = layer.convolution;
    const ImageShape& in = layer.in;
    const ImageShape& out = layer.out;
    const float* w = p.data() + layer.weights.offset;
    const float* bias = p.data() + layer.bias.offset;
    const int row = spec.kernel * in.channels;
    Numbers result;
    for (int place = 0; place < out.height * out.width; ++place) {
      const int y = place / out.width * spec.stride, left = place % out.width * spec.stride;
      for (int f = 0; f < out.channels; ++f) {
        Sum sum;
        sum.Add(double{bias[f]});
        for (int tap = 0; tap < spec.kernel * row; ++tap) {
          const int at = ((y + tap / row) * in.width + left) * in.channels + tap % row;
          sum.Add(x[at] * double{w[tap * out.channels + f]});
        }
        result.push_back(Relu(sum, watched));
      }
    }
    return result;
  }

  Numbers Hidden(std::span<const float> p, Numbers x, bool watched) {
    for (const LayerSpec& layer : layout_.torso()) {
      x = layer.kind == LayerKind::kConvolution ? Convolution(p, layer, x, watched)
                                                : Dense(p, layer, x, watched);
    }
    return x;
  }

  void FindTies(std::span<const float> p, const Numbers& hidden) {
    const NetworkSpec& n = spec_.network;
    const bool ensemble = spec_.loss.target_rule == TargetRule::kEnsemble;
    const float* w = p.data() + layout_.head().weights.offset;
    const float* bias = p.data() + layout_.head().bias.offset;
    for (int chooser = 0; chooser < (ensemble ? 1 : n.members); ++chooser) {
      std::vector<Sum> values(n.actions);
      for (int a = 0; a < n.actions; ++a) {
        for (int k = ensemble ? 0 : chooser; k < (ensemble ? n.members : chooser + 1); ++k) {
          for (int m = 0; m < n.outputs; ++m) {
            const int row = a * n.members + k;
            values[a].Add(double{bias[n.shared_output_bias ? 0 : row * n.outputs + m]});
            for (int h = 0; h < n.hidden_units; ++h) {
              values[a].Add(hidden[(n.separate_hidden ? k * n.hidden_units : 0) + h] *
                            double{w[(std::size_t{1} * row * n.hidden_units + h) * n.outputs + m]});
            }
          }
        }
      }
      std::sort(values.begin(), values.end(),
                [](const Sum& x, const Sum& y) { return x.value > y.value; });
      if (n.actions == 1 || values[0].size == 0) continue;
      kinks_.greedy = std::min(kinks_.greedy, (values[0].value - values[1].value) / values[0].size);
    }
  }

  const LearnerSpec& spec_;
  const ParameterLayout& layout_;
  Kinks kinks_;
};

}  // namespace uper::cuda
