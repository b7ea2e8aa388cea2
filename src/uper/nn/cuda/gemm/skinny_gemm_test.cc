#include "uper/nn/cuda/gemm/skinny_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

// A layer; a test may ask for any number of its rows.
struct SkinnyGemmLayer {
  int columns, length, splits;
  std::vector<float> a, b, bias;

  SkinnyGemmLayer(int most_rows, int n, int k, int parts)
      : columns(n),
        length(k),
        splits(parts),
        a(RandomFloats(std::size_t{1} * most_rows * k, "a")),
        b(RandomFloats(std::size_t{1} * k * n, "b")),
        bias(RandomFloats(n, "bias")) {}

  std::vector<float> Run(int rows) const {
    const DeviceBuffer<float> gpu_a = OnGpu(a), gpu_b = OnGpu(b), gpu_bias = OnGpu(bias);
    DeviceBuffer<float> found = Poisoned(std::size_t{1} * rows * columns);
    GemmBatch call;
    Gemm& p = call.gemms[0];
    p.rows = rows;
    p.columns = columns;
    p.length = length;
    p.a = gpu_a.data();
    p.a_rows.stride = length;
    p.a_taps.stride = 1;
    p.b = gpu_b.data();
    p.b_taps.stride = columns;
    p.b_columns.stride = 1;
    p.bias = gpu_bias.data();
    p.c = found.data();
    p.c_rows.stride = columns;
    call.vectors = true;
    call.epilogue = GemmEpilogue::kBiasRelu;
    call.splits = call.cluster = splits;
    EXPECT_TRUE(SupportsSkinnyGemm(call));
    LaunchSkinnyGemm(call, nullptr);
    return FromGpu(found);
  }

  // By plain loops.
  void Check(const std::vector<float>& found) const {
    for (std::size_t at = 0; at < found.size(); ++at) {
      const std::size_t row = at / columns, column = at % columns;
      double sum = bias[column], size = std::abs(sum);
      for (int k = 0; k < length; ++k) {
        const double term = double{a[row * length + k]} * double{b[k * columns + column]};
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(found[at], std::max(0.0, sum), std::ldexp(size, -20)) << row << " " << column;
    }
  }
};

class SkinnyGemmTest : public GpuTest {};

TEST_F(SkinnyGemmTest, AnyNumberOfRows) {
  for (const auto& [columns, length, splits] :
       {std::tuple(32, 64, 1), {64, 512, 8}, {96, 448, 3}, {512, 3136, 7}}) {
    SCOPED_TRACE(testing::Message() << columns << " x " << length << ", " << splits);
    const SkinnyGemmLayer layer(37, columns, length, splits);
    const std::vector<float> all = layer.Run(37);
    layer.Check(all);
    for (const int rows : {1, 2, 4, 5, 16, 17, 32}) {
      const std::vector<float> some = layer.Run(rows);
      EXPECT_TRUE(SameBits(some, std::span(all).first(some.size()))) << rows;
    }
  }
}

TEST_F(SkinnyGemmTest, DoesNotSupportOtherGemms) {
  GemmBatch call;
  call.vectors = true;
  call.epilogue = GemmEpilogue::kBiasRelu;
  Gemm& p = call.gemms[0];
  p.rows = 1;
  p.columns = 32;
  p.length = 64;
  p.a_rows.stride = 64;
  p.a_taps.stride = p.b_columns.stride = 1;
  ASSERT_TRUE(SupportsSkinnyGemm(call));
  const auto is_supported = [&](auto change) {
    GemmBatch other = call;
    change(other);
    return SupportsSkinnyGemm(other);
  };
  EXPECT_FALSE(is_supported([](GemmBatch& c) { c.gemms[0].length = 65; }));
  EXPECT_FALSE(is_supported([](GemmBatch& c) { c.gemms[0].columns = 31; }));
  EXPECT_FALSE(is_supported([](GemmBatch& c) { c.count = 2; }));
  EXPECT_FALSE(is_supported([](GemmBatch& c) { c.precision = Precision::kTf32; }));
  EXPECT_FALSE(is_supported([](GemmBatch& c) { c.splits = kPortableCluster + 1; }));
  EXPECT_FALSE(is_supported([](GemmBatch& c) { c.epilogue = GemmEpilogue::kMask; }));
}

}  // namespace
}  // namespace uper::cuda
