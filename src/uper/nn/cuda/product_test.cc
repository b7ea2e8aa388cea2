#include "uper/nn/cuda/product.h"

#include <cmath>
#include <utility>

#include "uper/nn/cuda/test_support.h"
#include "uper/nn/test_data.h"

namespace uper {
namespace {

struct ProductCase {
  int rows, columns, length;
  Along a_along, b_along;
  bool vectors;
  ProductTile tile;
  int splits, cluster;
  ProductFinish finish;
  bool sums_row = false;
};

// Offsets that jump about: entry i lies at table[i].
std::vector<int> JumpingOffsets(int count, int step) {
  std::vector<int> table(count);
  for (int i = 0; i < count; ++i) table[i] = (i * 7 + 3) % count * step;
  return table;
}

// Two products in one call, operands read through tables where `tables`, compared with plain loops.
void Check(const ProductCase& c, bool tables) {
  SCOPED_TRACE(testing::Message() << c.rows << "x" << c.columns << "x" << c.length << " along "
                                  << int(c.a_along) << int(c.b_along) << " vectors " << c.vectors
                                  << " tile " << int(c.tile) << " splits " << c.splits << "/"
                                  << c.cluster << " finish " << int(c.finish) << " tables "
                                  << tables);
  const bool a_rows_far = c.a_along == Along::kLength;
  const bool b_columns_far = c.b_along == Along::kLength;
  // The index that is not along memory may jump.
  const std::vector<int> a_table =
      JumpingOffsets(a_rows_far ? c.rows : c.length, a_rows_far ? c.length : c.rows);
  const std::vector<int> b_table =
      JumpingOffsets(b_columns_far ? c.columns : c.length, b_columns_far ? c.length : c.columns);
  const auto far = [](int i, const std::vector<int>& table, bool use, int step) {
    return use ? table[i] : i * step;
  };
  const auto a_at = [&](int m, int k) {
    return a_rows_far ? far(m, a_table, tables, c.length) + k : far(k, a_table, tables, c.rows) + m;
  };
  const auto b_at = [&](int k, int n) {
    return b_columns_far ? far(n, b_table, tables, c.length) + k
                         : far(k, b_table, tables, c.columns) + n;
  };
  const DeviceBuffer<int> gpu_a_table = OnGpu(a_table), gpu_b_table = OnGpu(b_table);
  std::vector<int> every_step(c.length);
  for (int k = 0; k < c.length; ++k) every_step[k] = k;
  const DeviceBuffer<int> gpu_steps = OnGpu(every_step);
  const int all_rows = c.rows + (c.sums_row ? 1 : 0);
  ProductCall call;
  call.count = 2;
  call.a_along = c.a_along;
  call.b_along = c.b_along;
  call.vectors = c.vectors;
  call.tile = c.tile;
  call.splits = c.splits;
  call.cluster = c.cluster;
  call.finish = c.finish;
  call.sums_row = c.sums_row;
  std::vector<std::vector<float>> a, b, bias, mask;
  std::vector<DeviceBuffer<float>> memory, results;
  for (int i = 0; i < call.count; ++i) {
    const std::string name = std::to_string(i);
    a.push_back(RandomFloats(std::size_t{1} * c.rows * c.length, "a" + name));
    b.push_back(RandomFloats(std::size_t{1} * c.length * c.columns, "b" + name));
    bias.push_back(RandomFloats(c.columns, "bias" + name));
    mask.push_back(RandomFloats(std::size_t{1} * c.rows * c.columns, "mask" + name));
    Product& p = call.products[i];
    p.rows = c.rows;
    p.columns = c.columns;
    p.length = c.length;
    p.a = memory.emplace_back(OnGpu(a.back())).data();
    p.b = memory.emplace_back(OnGpu(b.back())).data();
    p.bias = memory.emplace_back(OnGpu(bias.back())).data();
    p.mask = memory.emplace_back(OnGpu(mask.back())).data();
    const Offsets one{nullptr, 1}, steps{gpu_steps.data(), 0};
    const Offsets a_far =
        tables ? Offsets{gpu_a_table.data(), 0} : Offsets{nullptr, a_rows_far ? c.length : c.rows};
    const Offsets b_far = tables ? Offsets{gpu_b_table.data(), 0}
                                 : Offsets{nullptr, b_columns_far ? c.length : c.columns};
    p.a_rows = a_rows_far ? a_far : one;
    p.a_taps = a_rows_far ? (tables ? steps : one) : a_far;
    p.b_columns = b_columns_far ? b_far : one;
    p.b_taps = b_columns_far ? (tables ? steps : one) : b_far;
    p.mask_rows = {nullptr, c.columns};
    p.c = results.emplace_back(Poisoned(std::size_t{1} * all_rows * c.columns)).data();
    p.c_rows = {nullptr, c.columns};
  }
  if (!SuitsTile(call, call.tile)) return;
  DeviceBuffer<double> squares(ProductBlocks(call));
  call.squares = squares.data();
  LaunchProducts(call, nullptr);
  double found_squares = 0, expected_squares = 0;
  for (const double part : FromGpu(squares)) found_squares += part;
  for (int i = 0; i < call.count; ++i) {
    std::vector<double> expected;
    for (int m = 0; m < all_rows; ++m) {
      for (int n = 0; n < c.columns; ++n) {
        double sum = 0;
        for (int k = 0; k < c.length; ++k) {
          sum += (m < c.rows ? double{a[i][a_at(m, k)]} : 1.0) * double{b[i][b_at(k, n)]};
        }
        if (c.finish == ProductFinish::kBiasRelu) sum = std::max(0.0, sum + double{bias[i][n]});
        if (c.finish == ProductFinish::kMask && !(mask[i][m * c.columns + n] > 0)) sum = 0;
        expected.push_back(sum);
        expected_squares += sum * sum;
      }
    }
    EXPECT_LT(RelativeError(FromGpu(results[i]), expected), 3e-6);
  }
  EXPECT_NEAR(found_squares, expected_squares, 1e-5 * expected_squares);
}

class ProductTest : public GpuTest {};

TEST_F(ProductTest, OddShapesOneElementAtATime) {
  for (const bool tables : {false, true}) {
    Check({1, 1, 1, Along::kLength, Along::kSide, false, ProductTile::k32x32, 1, 1,
           ProductFinish::kBiasRelu},
          tables);
    Check({33, 31, 67, Along::kLength, Along::kSide, false, ProductTile::k32x32, 1, 1,
           ProductFinish::kBiasRelu},
          tables);
    Check({35, 45, 99, Along::kLength, Along::kLength, false, ProductTile::k32x32, 2, 2,
           ProductFinish::kMask},
          tables);
    Check({37, 5, 131, Along::kSide, Along::kSide, false, ProductTile::k32x32, 3, 1,
           ProductFinish::kStore, true},
          tables);
  }
}

TEST_F(ProductTest, VectorsAndTiles) {
  for (int i = 0; i < kTileCount; ++i) {
    const auto tile = static_cast<ProductTile>(i);
    for (const bool tables : {false, true}) {
      for (const auto& [splits, cluster] : {std::pair(1, 1), {3, 3}, {4, 2}, {16, 16}}) {
        for (const int length : {260, 320}) {  // the second is whole chunks
          Check({100, 36, length, Along::kLength, Along::kSide, true, tile, splits, cluster,
                 ProductFinish::kBiasRelu},
                tables);
          Check({100, 36, length, Along::kLength, Along::kLength, true, tile, splits, cluster,
                 ProductFinish::kMask},
                tables);
          Check({100, 36, length, Along::kSide, Along::kSide, true, tile, splits, cluster,
                 ProductFinish::kStore, true},
                tables);
        }
        Check({100, 36, 261, Along::kSide, Along::kSide, true, tile, splits, cluster,
               ProductFinish::kStore, true},
              tables);
      }
    }
  }
}

TEST_F(ProductTest, MoreSplitsThanChunksAndNoLength) {
  Check({4, 4, 8, Along::kLength, Along::kSide, true, ProductTile::k32x32, 5, 5,
         ProductFinish::kStore},
        false);
  ProductCall call;
  Product& p = call.products[0];
  p.rows = p.columns = 4;
  DeviceBuffer<float> c = Poisoned(16);
  p.a = p.b = p.c = c.data();
  p.c_rows.stride = 4;
  LaunchProducts(call, nullptr);
  EXPECT_EQ(FromGpu(c), std::vector<float>(16, 0.0F));
}

}  // namespace
}  // namespace uper
