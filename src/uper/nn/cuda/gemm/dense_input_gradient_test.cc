#include "uper/nn/cuda/gemm/dense_input_gradient.h"

#include <algorithm>
#include <cmath>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

struct InputsCase {
  int batch, inputs, units;
  bool table = false;  // results are scattered, in another order
  bool whole = false;  // small whole numbers: exact
};

std::vector<float> InputsOperand(std::size_t size, const char* name, bool whole) {
  std::vector<float> values = RandomFloats(size, name);
  for (float& value : values) {
    if (whole) value = std::round(std::clamp(3 * value, -3.0F, 3.0F));
  }
  return values;
}

// Compares with plain loops. Returns d_x.
std::vector<float> CheckInputs(const InputsCase& c) {
  SCOPED_TRACE(testing::Message() << c.batch << " x " << c.inputs << " x " << c.units << " table "
                                  << c.table << " whole " << c.whole);
  const std::vector<float> d_out = InputsOperand(std::size_t{1} * c.batch * c.units, "d", c.whole);
  const std::vector<float> w = InputsOperand(std::size_t{1} * c.inputs * c.units, "w", c.whole);
  const std::vector<float> mask = RandomFloats(std::size_t{1} * c.batch * c.inputs, "mask");
  std::vector<int> columns;
  for (int i = 0; i < c.inputs; ++i) columns.push_back(2 * (c.inputs - 1 - i) + 1);
  const DeviceBuffer<float> gpu_d = OnGpu(d_out), gpu_w = OnGpu(w), gpu_mask = OnGpu(mask);
  const DeviceBuffer<int> gpu_columns = OnGpu(columns);
  const int sample = 2 * c.inputs + 3;
  DeviceBuffer<float> d_x = Poisoned(std::size_t{1} * c.batch * sample);
  DenseInputGradient call{.batch = c.batch,
                          .inputs = c.inputs,
                          .units = c.units,
                          .d_out = gpu_d.data(),
                          .w = gpu_w.data(),
                          .mask = gpu_mask.data(),
                          .d_x = d_x.data(),
                          .d_sample = sample};
  if (c.table) call.d_columns = {.table = gpu_columns.data()};
  LaunchDenseInputGradient(call, nullptr);
  std::vector<float> found = FromGpu(d_x);
  const std::vector<float> all = found;
  for (int b = 0; b < c.batch; ++b) {
    for (int i = 0; i < c.inputs; ++i) {
      double sum = 0, size = 0;
      for (int u = 0; u < c.units; ++u) {
        const double term = double{d_out[b * c.units + u]} * double{w[i * c.units + u]};
        sum += term;
        size += std::abs(term);
      }
      if (!(mask[b * c.inputs + i] > 0)) sum = size = 0;
      float& value = found[b * sample + (c.table ? columns[i] : i)];
      EXPECT_NEAR(value, sum, c.whole ? 0 : std::ldexp(size, -21)) << b << " " << i;
      value = std::nanf("");
      if (testing::Test::HasFailure()) return {};  // one failure is enough
    }
  }
  for (const float value : found) EXPECT_TRUE(std::isnan(value)) << "beside the results";
  return all;
}

class DenseInputGradientTest : public GpuTest {};

TEST_F(DenseInputGradientTest, AllSizes) {
  for (const bool whole : {false, true}) {
    CheckInputs({32, 3136, 512, true, whole});
    CheckInputs({32, 100, 512, false, whole});
    CheckInputs({1, 1, 64, false, whole});
    CheckInputs({7, 23, 128, true, whole});
    CheckInputs({31, 25, 320, false, whole});
  }
}

TEST_F(DenseInputGradientTest, RepeatsBitForBit) {
  const std::vector<float> first = CheckInputs({32, 3136, 512, true});
  EXPECT_TRUE(SameBits(CheckInputs({32, 3136, 512, true}), first));
}

TEST(DenseInputGradientSizeTest, KnowsWhatItCannotDo) {
  EXPECT_TRUE(SupportsDenseInputGradient(32, 512));
  EXPECT_FALSE(SupportsDenseInputGradient(33, 512));
  EXPECT_FALSE(SupportsDenseInputGradient(32, 500));
  EXPECT_FALSE(SupportsDenseInputGradient(32, 1024));  // too much shared memory
}

}  // namespace
}  // namespace uper::cuda
