#include "uper/nn/cpu/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

void OnEveryTarget(const std::function<void()>& check) {
  for (const std::int64_t target : RunnableSimdTargets()) {
    UseSimdTarget(target);
    SCOPED_TRACE(SimdTargetName());
    check();
  }
  UseSimdTarget(0);
}

template <typename Entry>
void ExpectConverted(InputSpec input, InputType type, float scale) {
  input.type = type;
  input.scale = scale;
  const int pixels = input.height * input.width;
  std::vector<Entry> from(pixels * input.channels);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<Entry>(i * 7 % 256);
  std::vector<float> expected(from.size());
  for (int p = 0; p < pixels; ++p) {
    for (int c = 0; c < input.channels; ++c) {
      const bool planes = input.layout == InputLayout::kPlanes;
      const Entry entry = from[planes ? c * pixels + p : p * input.channels + c];
      expected[p * input.channels + c] = scale * static_cast<float>(entry);
    }
  }
  OnEveryTarget([&] {
    std::vector<float> to(from.size());
    ConvertObservation(input, reinterpret_cast<const std::byte*>(from.data()), to.data());
    EXPECT_TRUE(SameBits(to, expected));
  });
}

TEST(ConvertObservationTest, EveryTypeLayoutAndOddSize) {
  for (const int channels : {1, 3, 4, 7}) {
    for (const int width : {1, 5, 10, 33}) {
      for (const auto layout : {InputLayout::kChannelsLast, InputLayout::kPlanes}) {
        const InputSpec input{.height = 3, .width = width, .channels = channels, .layout = layout};
        ExpectConverted<std::uint8_t>(input, InputType::kUint8, 1.0F / 255.0F);
        ExpectConverted<float>(input, InputType::kFloat32, 0.5F);
      }
    }
  }
}

TEST(MaskByActivationTest, KeepsOnlyWhereTheUnitWasActive) {
  for (const std::size_t count : {1, 15, 16, 40}) {
    const auto activation = RandomFloats(count, "activation");
    OnEveryTarget([&] {
      auto d = RandomFloats(count, "d");
      const auto before = d;
      MaskByActivation(activation, d);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(d[i], activation[i] > 0 ? before[i] : 0) << i;
      }
    });
  }
}

TEST(ColumnSumsTest, ChainsInAscendingRows) {
  for (const int columns : {1, 16, 37}) {
    const auto x = RandomFloats(9 * columns, "x");
    for (const bool add : {false, true}) {
      const auto before = RandomFloats(columns, "sums");
      std::vector<float> expected(columns);
      for (int c = 0; c < columns; ++c) {
        float sum = 0;
        for (int r = 0; r < 9; ++r) sum += x[r * columns + c];
        expected[c] = add ? before[c] + sum : sum;
      }
      OnEveryTarget([&] {
        auto sums = before;
        ColumnSums(x.data(), 9, columns, add, sums.data());
        EXPECT_TRUE(SameBits(sums, expected)) << columns;
        std::vector<float> of_each(3 * columns, 7);
        ColumnSumsOfEach(x.data(), 3, 3, columns, of_each.data());
        for (int i = 0; i < 3; ++i) {
          ColumnSums(x.data() + 3 * i * columns, 3, columns, /*add=*/false, sums.data());
          EXPECT_TRUE(SameBits(sums, std::span(of_each).subspan(i * columns, columns)));
        }
      });
    }
  }
}

TEST(TransposeTest, SwapsIndicesWithStrides) {
  const auto from = RandomFloats(40 * 50, "from");
  std::vector<float> to(50 * 45, 7);
  Transpose(from.data(), 37, 41, 50, to.data(), 45);
  for (int c = 0; c < 41; ++c) {
    for (int r = 0; r < 37; ++r) EXPECT_EQ(to[c * 45 + r], from[r * 50 + c]);
    EXPECT_EQ(to[c * 45 + 37], 7);
  }
}

TEST(RowMeansTest, SameBitsEverywhereAndCloseToTheMean) {
  for (const int length : {1, 15, 16, 51, 201}) {
    const auto from = RandomFloats(5 * length, "from");
    std::vector<float> first;
    OnEveryTarget([&] {
      std::vector<float> to(15, 9);
      RowMeans(from.data(), 5, length, to.data(), 3);
      for (int r = 0; r < 5; ++r) {
        double sum = 0;
        for (int i = 0; i < length; ++i) sum += double{from[r * length + i]};
        EXPECT_NEAR(to[r * 3], sum / length, 1e-6);
        EXPECT_EQ(to[r * 3 + 1], 9);
      }
      if (first.empty()) first = to;
      EXPECT_TRUE(SameBits(to, first)) << length;
    });
  }
}

TEST(FindNonzeroRowsTest, FindsASingleEntry) {
  std::vector<float> x(4 * 37);
  x[36] = 1e-30F;
  x[2 * 37] = std::nanf("");
  x[3 * 37] = -0.0F;
  OnEveryTarget([&] {
    std::vector<char> nonzero(4, 7);
    FindNonzeroRows(x.data(), 4, 37, nonzero.data());
    EXPECT_EQ(nonzero, (std::vector<char>{1, 0, 1, 0}));
  });
}

}  // namespace
}  // namespace uper::cpu
