#include "uper/nn/cuda/dense_step.h"

#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/cuda/test_support.h"
#include "uper/nn/test_data.h"

namespace uper {
namespace {

class DenseStepTest : public GpuTest {};

struct DenseCase {
  int batch, inputs, units;
  std::size_t offset;  // of the layer in the parameters
};

TEST_F(DenseStepTest, FormsTheGradientAndSteps) {
  const DenseCase cases[] = {{1, 1, 1, 0},     {7, 5, 3, 1},    {32, 100, 128, 4},
                             {64, 31, 516, 0}, {33, 63, 20, 2}, {5, 300, 132, 12}};
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
      DeviceBuffer<float> to_p = OnGpu(p), to_m = OnGpu(m), to_v = OnGpu(v);
      DeviceBuffer<float> gradient(p.size());
      DeviceBuffer<double> squares(DenseStepBlocks(c.inputs, c.units));
      DeviceBuffer<StepState> state(1);
      const std::variant<AdamOptions, RmsPropOptions> optimizer =
          adam ? std::variant<AdamOptions, RmsPropOptions>(AdamOptions{}) : RmsPropOptions{};
      const OptimizerRules rules = RulesOf(optimizer, 1e-9);  // clipping comes later
      LaunchBeginStep(rules, state.data(), nullptr);
      const std::size_t at = c.offset;
      LaunchDenseStep({.rules = rules,
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
      std::vector<float> expected(p.size());
      double expected_squares = 0;
      for (int i = 0; i <= c.inputs; ++i) {
        for (int u = 0; u < c.units; ++u) {
          double sum = 0;
          for (int b = 0; b < c.batch; ++b) {
            sum += (i < c.inputs ? double{x[b * c.inputs + i]} : 1.0) * double{d[b * c.units + u]};
          }
          expected[at + i * c.units + u] = static_cast<float>(sum);
          expected_squares += sum * sum;
        }
      }
      const OptimizerBuffers buffers{.parameters = std::span(p).subspan(at),
                                     .gradient = std::span(expected).subspan(at),
                                     .m = std::span(m).subspan(at),
                                     .v = std::span(v).subspan(at)};
      if (adam) {
        OptimizerStep(AdamOptions{}, 1, 1).Apply(buffers);
      } else {
        OptimizerStep(RmsPropOptions{}, 1).Apply(buffers);
      }
      EXPECT_LT(RelativeError(FromGpu(gradient), expected), 2e-6);
      EXPECT_LT(RelativeError(FromGpu(to_p), p), 2e-6);
      EXPECT_LT(RelativeError(FromGpu(to_m), m), 2e-6);
      EXPECT_LT(RelativeError(FromGpu(to_v), v), 2e-6);
      double found_squares = 0;
      for (const double part : FromGpu(squares)) found_squares += part;
      EXPECT_NEAR(found_squares, expected_squares, 1e-5 * expected_squares);
    }
  }
}

}  // namespace
}  // namespace uper
