#include "uper/nn/cuda/gemm/gemm.h"

#include <cmath>
#include <limits>
#include <utility>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

struct GemmCase {
  int rows, columns, length;
  Contiguous a_contiguous, b_contiguous;
  bool vectors;
  GemmTile tile;
  int splits, cluster;
  GemmEpilogue epilogue;
  bool with_bias_gradient = false;
};

// Tolerance relative to the sum of the terms' magnitudes. Rounding to 11 bits changes an operand by
// at most 2^-11 of it. With two such terms, an operand loses 2^-23, and the missing product of the
// second terms is 2^-22. The rounding of fp32 is added to that.
double LargestError(Precision precision) {
  return precision == Precision::kTf32 ? std::ldexp(1.01, -10) : std::ldexp(1.0, -20);
}

// Scattered offsets: entry i lies at table[i].
std::vector<int> KinkOffsets(int count, int step) {
  std::vector<int> table(count);
  for (int i = 0; i < count; ++i) table[i] = (i * 7 + 3) % count * step;
  return table;
}

// The parts of a check.
struct CheckOptions {
  bool tables = false;  // operands are read through tables
  Precision precision = Precision::kFp32;
  bool whole = false;  // operands are small whole numbers: every result must be exact
};

std::vector<float> Operand(std::size_t count, const std::string& name, bool whole) {
  std::vector<float> values = RandomFloats(count, name);
  if (whole) {
    for (float& value : values) value = std::round(4 * value);
  }
  return values;
}

// Two GEMMs in one call, compared with plain loops. Returns the results.
std::vector<float> Check(const GemmCase& c, const CheckOptions& options) {
  const bool tables = options.tables;
  SCOPED_TRACE(testing::Message() << c.rows << "x" << c.columns << "x" << c.length << " along "
                                  << int(c.a_contiguous) << int(c.b_contiguous) << " vectors "
                                  << c.vectors << " tile " << int(c.tile) << " splits " << c.splits
                                  << "/" << c.cluster << " finish " << int(c.epilogue) << " tables "
                                  << tables << " precision " << int(options.precision));
  const bool a_rows_far = c.a_contiguous == Contiguous::kReduction;
  const bool b_columns_far = c.b_contiguous == Contiguous::kReduction;
  // The index that is not contiguous may be scattered.
  const std::vector<int> a_table =
      KinkOffsets(a_rows_far ? c.rows : c.length, a_rows_far ? c.length : c.rows);
  const std::vector<int> b_table =
      KinkOffsets(b_columns_far ? c.columns : c.length, b_columns_far ? c.length : c.columns);
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
  const int all_rows = c.rows + (c.with_bias_gradient ? 1 : 0);
  GemmBatch call;
  call.count = 2;
  call.a_contiguous = c.a_contiguous;
  call.b_contiguous = c.b_contiguous;
  call.vectors = c.vectors;
  call.tile = c.tile;
  call.splits = c.splits;
  call.cluster = c.cluster;
  call.epilogue = c.epilogue;
  call.with_bias_gradient = c.with_bias_gradient;
  call.precision = options.precision;
  std::vector<std::vector<float>> a, b, bias, mask;
  std::vector<DeviceBuffer<float>> memory, results;
  for (int i = 0; i < call.count; ++i) {
    const std::string name = std::to_string(i);
    a.push_back(Operand(std::size_t{1} * c.rows * c.length, "a" + name, options.whole));
    b.push_back(Operand(std::size_t{1} * c.length * c.columns, "b" + name, options.whole));
    bias.push_back(Operand(c.columns, "bias" + name, options.whole));
    mask.push_back(RandomFloats(std::size_t{1} * c.rows * c.columns, "mask" + name));
    Gemm& p = call.gemms[i];
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
  if (!SupportsTile(call, call.tile)) return {};
  DeviceBuffer<double> squares(GemmBlocks(call));
  call.squares = squares.data();
  LaunchGemms(call, nullptr);
  double found_squares = 0, expected_squares = 0, worst = 0;
  for (const double part : FromGpu(squares)) found_squares += part;
  std::vector<float> all;
  for (int i = 0; i < call.count; ++i) {
    const std::vector<float> found = FromGpu(results[i]);
    all.insert(all.end(), found.begin(), found.end());
    std::vector<double> expected;
    for (int m = 0; m < all_rows; ++m) {
      for (int n = 0; n < c.columns; ++n) {
        double sum = 0, size = 0;
        for (int k = 0; k < c.length; ++k) {
          const double term =
              (m < c.rows ? double{a[i][a_at(m, k)]} : 1.0) * double{b[i][b_at(k, n)]};
          sum += term;
          size += std::abs(term);
        }
        if (c.epilogue == GemmEpilogue::kBiasRelu) sum = std::max(0.0, sum + double{bias[i][n]});
        if (c.epilogue == GemmEpilogue::kMask && !(mask[i][m * c.columns + n] > 0)) sum = 0;
        const double error = std::abs(double{found[expected.size()]} - sum);
        // The bias gradient is always fp32.
        const Precision precision = m < c.rows ? options.precision : Precision::kFp32;
        EXPECT_LE(error, LargestError(precision) * (size + std::abs(sum))) << m << ", " << n;
        if (m < c.rows && size > 0) worst = std::max(worst, error / size);
        expected.push_back(sum);
        expected_squares += sum * sum;
        if (testing::Test::HasFailure()) return {};  // one failure is enough
      }
    }
    if (options.precision == Precision::kFp32) {
      EXPECT_LT(RelativeError(found, expected), 3e-6);
    }
  }
  const double allowed = options.precision == Precision::kTf32 ? 1e-2 : 1e-5;
  EXPECT_NEAR(found_squares, expected_squares, allowed * expected_squares);
  if (options.whole) {
    EXPECT_EQ(worst, 0);
  }
  // shows that no other precision was used: fp32 and tf32x3 are far better
  if (options.precision == Precision::kTf32 && !options.whole && c.rows * c.columns > 100) {
    EXPECT_GT(worst, std::ldexp(1.0, -17));
  }
  return all;
}

class GemmTest : public GpuTest {};

// One element at a time.
std::vector<GemmCase> OddCases() {
  constexpr auto kTile = GemmTile::k32x32;
  return {{1, 1, 1, Contiguous::kReduction, Contiguous::kOutput, false, kTile, 1, 1,
           GemmEpilogue::kBiasRelu},
          {33, 31, 67, Contiguous::kReduction, Contiguous::kOutput, false, kTile, 1, 1,
           GemmEpilogue::kBiasRelu},
          {35, 45, 99, Contiguous::kReduction, Contiguous::kReduction, false, kTile, 2, 2,
           GemmEpilogue::kMask},
          {37, 5, 131, Contiguous::kOutput, Contiguous::kOutput, false, kTile, 3, 1,
           GemmEpilogue::kStore, true}};
}

// Four at a time, also in whole chunks.
std::vector<GemmCase> VectorCases() {
  std::vector<GemmCase> cases;
  for (int i = 0; i < kTileCount; ++i) {
    const auto tile = static_cast<GemmTile>(i);
    for (const auto& [splits, cluster] : {std::pair(1, 1), {3, 3}, {4, 2}, {16, 16}}) {
      for (const int length : {260, 320}) {  // 320 is a multiple of the chunk
        cases.push_back({100, 36, length, Contiguous::kReduction, Contiguous::kOutput, true, tile,
                         splits, cluster, GemmEpilogue::kBiasRelu});
        cases.push_back({100, 36, length, Contiguous::kReduction, Contiguous::kReduction, true,
                         tile, splits, cluster, GemmEpilogue::kMask});
        cases.push_back({100, 36, length, Contiguous::kOutput, Contiguous::kOutput, true, tile,
                         splits, cluster, GemmEpilogue::kStore, true});
      }
      cases.push_back({100, 36, 261, Contiguous::kOutput, Contiguous::kOutput, true, tile, splits,
                       cluster, GemmEpilogue::kStore, true});
    }
  }
  return cases;
}

TEST_F(GemmTest, OddShapesOneElementAtATime) {
  for (const Precision precision : kAllPrecisions) {
    for (const GemmCase& c : OddCases()) {
      for (const bool tables : {false, true}) {
        Check(c, {.tables = tables, .precision = precision});
      }
    }
  }
}

TEST_F(GemmTest, VectorsAndTiles) {
  for (const Precision precision : kAllPrecisions) {
    for (const GemmCase& c : VectorCases()) {
      for (const bool tables : {false, true}) {
        Check(c, {.tables = tables, .precision = precision});
      }
    }
  }
}

// Eleven bits hold the operands and 24 bits hold all sums: no index may be mistaken for another.
TEST_F(GemmTest, SmallWholeNumbersAreExactInEveryPrecision) {
  for (const Precision precision : kAllPrecisions) {
    for (const auto& cases : {OddCases(), VectorCases()}) {
      for (const GemmCase& c : cases) Check(c, {.precision = precision, .whole = true});
    }
  }
}

TEST_F(GemmTest, BlocksAndRepetitionsDoNotChangeTheBits) {
  for (const Precision precision : kAllPrecisions) {
    for (const auto& [a_contiguous, b_contiguous] :
         {std::pair(Contiguous::kReduction, Contiguous::kOutput),
          {Contiguous::kReduction, Contiguous::kReduction},
          {Contiguous::kOutput, Contiguous::kOutput}}) {
      GemmCase c{100,
                 36,
                 320,
                 a_contiguous,
                 b_contiguous,
                 true,
                 GemmTile::k32x32,
                 4,
                 1,
                 GemmEpilogue::kStore};
      const std::vector<float> first = Check(c, {.precision = precision});
      for (int i = 0; i < kTileCount; ++i) {
        c.tile = static_cast<GemmTile>(i);
        for (const int cluster : {1, 2, 4}) {
          c.cluster = cluster;
          if (!HasTile(precision, c.tile)) continue;
          EXPECT_TRUE(SameBits(Check(c, {.precision = precision}), first));
        }
      }
    }
  }
}

TEST_F(GemmTest, EveryPrecisionHasBitsOfItsOwn) {
  const GemmCase c{100,
                   36,
                   320,
                   Contiguous::kReduction,
                   Contiguous::kOutput,
                   true,
                   GemmTile::k32x32,
                   1,
                   1,
                   GemmEpilogue::kStore};
  const std::vector<float> fp32 = Check(c, {.precision = Precision::kFp32});
  const std::vector<float> tf32 = Check(c, {.precision = Precision::kTf32});
  const std::vector<float> tf32x3 = Check(c, {.precision = Precision::kTf32x3});
  EXPECT_FALSE(SameBits(fp32, tf32));
  EXPECT_FALSE(SameBits(fp32, tf32x3));
  EXPECT_GT(RelativeError(tf32, fp32), 10 * RelativeError(tf32x3, fp32));
}

// NaN and infinity must not become finite numbers on their way through the tensor cores.
TEST_F(GemmTest, WhatIsNotFiniteStaysSo) {
  for (const Precision precision : kAllPrecisions) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> a(64, 1.0F);
      a[5] = bad;
      const DeviceBuffer<float> gpu_a = OnGpu(a), gpu_b = OnGpu(std::vector<float>(64, 1.0F));
      DeviceBuffer<float> c = Poisoned(1);
      GemmBatch call;
      call.precision = precision;
      Gemm& p = call.gemms[0];
      p.rows = p.columns = 1;
      p.length = 64;
      p.a = gpu_a.data();
      p.b = gpu_b.data();
      p.a_taps.stride = p.b_taps.stride = 1;
      p.c = c.data();
      LaunchGemms(call, nullptr);
      EXPECT_FALSE(std::isfinite(FromGpu(c)[0])) << int(precision) << " " << bad;
    }
  }
}

TEST_F(GemmTest, MoreSplitsThanChunksAndNoLength) {
  for (const Precision precision : kAllPrecisions) {
    Check({4, 4, 8, Contiguous::kReduction, Contiguous::kOutput, true, GemmTile::k32x32, 5, 5,
           GemmEpilogue::kStore},
          {.precision = precision});
    GemmBatch call;
    call.precision = precision;
    Gemm& p = call.gemms[0];
    p.rows = p.columns = 4;
    DeviceBuffer<float> c = Poisoned(16);
    p.a = p.b = p.c = c.data();
    p.c_rows.stride = 4;
    LaunchGemms(call, nullptr);
    EXPECT_EQ(FromGpu(c), std::vector<float>(16, 0.0F));
  }
}

}  // namespace
}  // namespace uper::cuda
