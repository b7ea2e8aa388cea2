#include "uper/nn/cuda/optimizer/dense_weight_update.h"

#include <cmath>
#include <span>

#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

class DenseWeightUpdateTest : public GpuTest {};

struct DenseCase {
  int batch, inputs, units;
  std::size_t offset;  // of the layer in the parameters
};

TEST_F(DenseWeightUpdateTest, FormsTheGradientAndSteps) {
  const DenseCase cases[] = {{1, 1, 1, 0},     {7, 5, 3, 1},     {32, 100, 128, 4},
                             {64, 31, 516, 0}, {33, 63, 20, 2},  {5, 300, 132, 12},
                             {64, 96, 132, 0}, {33, 64, 256, 8}, {1, 4, 4, 0}};
  for (const DenseCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.batch << " " << c.inputs << " " << c.units);
    for (const bool adam : {true, false}) {
      const std::size_t size = std::size_t{1} * (c.inputs + 1) * c.units;
      const std::vector<float> x = RandomFloats(std::size_t{1} * c.batch * c.inputs, "x");
      const std::vector<float> d = RandomFloats(std::size_t{1} * c.batch * c.units, "d");
      std::vector<float> p = RandomFloats(c.offset + size, "p"), m = RandomFloats(p.size(), "m");
      std::vector<float> v(p.size(), 3.0F);
      const DeviceBuffer<float> gpu_x = OnGpu(x), gpu_d = OnGpu(d);
      DeviceBuffer<float> from_p = OnGpu(p), from_m = OnGpu(m), from_v = OnGpu(v);
      DeviceBuffer<float> to_p = Poisoned(p.size()), to_m = Poisoned(p.size());
      DeviceBuffer<float> to_v = Poisoned(p.size()), gradient = Poisoned(p.size());
      DeviceBuffer<double> squares(DenseWeightUpdateBlocks(c.inputs, c.units));
      DeviceBuffer<UpdateState> state(1);
      const std::variant<AdamOptions, RmsPropOptions> optimizer =
          adam ? std::variant<AdamOptions, RmsPropOptions>(AdamOptions{}) : RmsPropOptions{};
      const OptimizerRules rules = RulesOf(optimizer, 1e-9);  // clipping happens later
      LaunchBeginUpdate(rules, state.data(), nullptr);
      const std::size_t at = c.offset;
      LaunchDenseWeightUpdate(
          {.rules = rules,
           .batch = c.batch,
           .inputs = c.inputs,
           .units = c.units,
           .x = gpu_x.data(),
           .d_output = gpu_d.data(),
           .gradient = gradient.data() + at,
           .parameters = {{from_p.data() + at, from_m.data() + at, from_v.data() + at},
                          {to_p.data() + at, to_m.data() + at, to_v.data() + at}},
           .state = state.data(),
           .squares = squares.data()},
          nullptr);
      std::vector<float> expected(size);  // samples in ascending order
      std::vector<double> exact(size);
      double expected_squares = 0;
      for (int i = 0; i <= c.inputs; ++i) {
        for (int u = 0; u < c.units; ++u) {
          double sum = 0;
          float& rounded = expected[i * c.units + u];
          for (int b = 0; b < c.batch; ++b) {
            const float input = i < c.inputs ? x[b * c.inputs + i] : 1.0F;
            sum += double{input} * double{d[b * c.units + u]};
            rounded = std::fma(input, d[b * c.units + u], rounded);
          }
          exact[i * c.units + u] = sum;
          expected_squares += sum * sum;
        }
      }
      const cpu::OptimizerBuffers buffers{.parameters = std::span(p).subspan(at),
                                          .gradient = expected,
                                          .m = std::span(m).subspan(at),
                                          .v = std::span(v).subspan(at)};
      if (adam) {
        cpu::OptimizerUpdate(AdamOptions{}, 1, 1).Apply(buffers);
      } else {
        cpu::OptimizerUpdate(RmsPropOptions{}, 1).Apply(buffers);
      }
      const auto of = [&](const std::vector<float>& values) {
        return std::span(values).subspan(at);
      };
      const std::vector<float> found = FromGpu(gradient);
      EXPECT_TRUE(SameBits(of(found), expected));
      EXPECT_LT(RelativeError(of(found), exact), 2e-6);
      const auto check = [&](const DeviceBuffer<float>& to, const std::vector<float>& wanted) {
        const std::vector<float> values = FromGpu(to);
        EXPECT_LT(RelativeError(of(values), of(wanted)), 2e-6);
        for (const float value : of(values)) EXPECT_FALSE(std::isnan(value));
        for (std::size_t i = 0; i < at; ++i) EXPECT_TRUE(std::isnan(values[i]));
      };
      check(to_p, p);
      check(to_m, m);
      check(to_v, v);
      double found_squares = 0;
      for (const double part : FromGpu(squares)) found_squares += part;
      EXPECT_NEAR(found_squares, expected_squares, 1e-5 * expected_squares);
    }
  }
}

}  // namespace
}  // namespace uper::cuda
