#include "uper/nn/cuda/few_rows.h"

#include <tuple>

#include "uper/nn/cuda/test_support.h"
#include "uper/nn/test_data.h"

namespace uper {
namespace {

class FewRowsTest : public GpuTest {};

TEST_F(FewRowsTest, HasTheBitsOfTheProduct) {
  for (const int rows : {1, 2, 4, 5, 16}) {
    for (const auto& [columns, length, splits] :
         {std::tuple(32, 64, 1), {64, 512, 8}, {96, 448, 3}, {512, 3136, 7}}) {
      const DeviceBuffer<float> a = OnGpu(RandomFloats(std::size_t{1} * rows * length, "a"));
      const DeviceBuffer<float> b = OnGpu(RandomFloats(std::size_t{1} * length * columns, "b"));
      const DeviceBuffer<float> bias = OnGpu(RandomFloats(columns, "bias"));
      ProductCall call;
      Product& p = call.products[0];
      p.rows = rows;
      p.columns = columns;
      p.length = length;
      p.a = a.data();
      p.a_rows.stride = length;
      p.a_taps.stride = 1;
      p.b = b.data();
      p.b_taps.stride = columns;
      p.b_columns.stride = 1;
      p.bias = bias.data();
      p.c_rows.stride = columns;
      call.vectors = true;
      call.finish = ProductFinish::kBiasRelu;
      call.splits = call.cluster = splits;
      DeviceBuffer<float> expected = Poisoned(std::size_t{1} * rows * columns);
      DeviceBuffer<float> found = Poisoned(expected.size());
      p.c = expected.data();
      LaunchProducts(call, nullptr);
      p.c = found.data();
      ASSERT_TRUE(SuitsFewRows(call));
      LaunchFewRows(call, nullptr);
      EXPECT_EQ(FromGpu(found), FromGpu(expected))
          << rows << " x " << columns << " x " << length << ", " << splits;
    }
  }
}

TEST_F(FewRowsTest, DoesNotSuitOtherProducts) {
  ProductCall call;
  call.vectors = true;
  call.finish = ProductFinish::kBiasRelu;
  Product& p = call.products[0];
  p.rows = 1;
  p.columns = 32;
  p.length = 64;
  p.a_rows.stride = 64;
  p.a_taps.stride = p.b_columns.stride = 1;
  ASSERT_TRUE(SuitsFewRows(call));
  const auto suits = [&](auto change) {
    ProductCall other = call;
    change(other);
    return SuitsFewRows(other);
  };
  EXPECT_FALSE(suits([](ProductCall& c) { c.products[0].rows = kFewRows + 1; }));
  EXPECT_FALSE(suits([](ProductCall& c) { c.products[0].length = 65; }));
  EXPECT_FALSE(suits([](ProductCall& c) { c.products[0].columns = 31; }));
  EXPECT_FALSE(suits([](ProductCall& c) { c.count = 2; }));
  EXPECT_FALSE(suits([](ProductCall& c) { c.precision = Precision::kTf32; }));
  EXPECT_FALSE(suits([](ProductCall& c) { c.splits = kPortableCluster + 1; }));
  EXPECT_FALSE(suits([](ProductCall& c) { c.finish = ProductFinish::kMask; }));
}

}  // namespace
}  // namespace uper
