#include "uper/nn/cpu/kernels/dense.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

TEST(DenseTest, AgreesWithTheSumInAnyPieces) {
  for (const int batch : {1, 3, 32, 64}) {
    for (const int inputs : {1, 9, 130}) {
      for (const int units : {1, 7, 50, 300}) {
        const Dense layer(inputs, units);
        const auto x = RandomFloats(batch * inputs, "x");
        const auto w = RandomFloats(inputs * units, "w");
        const auto bias = RandomFloats(units, "bias");
        const auto dy = RandomFloats(batch * units, "dy");
        std::vector<double> y(batch * units), dx(x.size()), dw(w.size());
        for (int b = 0; b < batch; ++b) {
          for (int u = 0; u < units; ++u) {
            double sum = bias[u];
            const double d = dy[b * units + u];
            for (int i = 0; i < inputs; ++i) {
              sum += double{x[b * inputs + i]} * double{w[i * units + u]};
              dx[b * inputs + i] += d * double{w[i * units + u]};
              dw[i * units + u] += d * double{x[b * inputs + i]};
            }
            y[b * units + u] = std::max(0.0, sum);
          }
        }
        std::vector<float> scratch(inputs * Dense::kUnitsTogether);
        std::vector<float> y_result(y.size(), 5), dx_result(x.size(), 5), dw_result(w.size(), 5);
        const int cut_u = units / 2;
        const int cut_i = inputs / 3;
        for (const auto& [begin, end] : {std::pair(0, cut_u), std::pair(cut_u, units)}) {
          layer.Forward(x.data(), w.data(), bias.data(), batch, begin, end, y_result.data());
        }
        for (const auto& [begin, end] : {std::pair(0, cut_i), std::pair(cut_i, inputs)}) {
          layer.BackwardInput(dy.data(), w.data(), batch, begin, end, scratch.data(),
                              dx_result.data());
          layer.BackwardWeights(x.data(), dy.data(), batch, begin, end, dw_result.data());
        }
        EXPECT_LT(RelativeError(y_result, y), 3e-6) << batch << " " << inputs << " " << units;
        EXPECT_LT(RelativeError(dx_result, dx), 3e-6) << batch << " " << inputs << " " << units;
        EXPECT_LT(RelativeError(dw_result, dw), 3e-6) << batch << " " << inputs << " " << units;
      }
    }
  }
}

}  // namespace
}  // namespace uper::cpu
