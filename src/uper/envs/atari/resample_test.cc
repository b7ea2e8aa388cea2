#include "uper/envs/atari/resample.h"

#include <gtest/gtest.h>

namespace uper::atari {
namespace {

// Halving: the center of output 0 is at 1, half width 2: inputs at 0.5, 1.5 and 2.5 weigh 0.75,
// 0.75 and 0.25 of 1.75.
TEST(BilinearTapsTest, HalvingByHand) {
  const Taps<int> taps = BilinearTaps(8, 4);
  ASSERT_EQ(taps.width, 4);
  EXPECT_EQ(taps.first, (std::vector<int>{0, 1, 3, 4}));
  const double one = 1 << kBilinearBits;
  EXPECT_NEAR(taps.weights[0], one * 3 / 7, 1);
  EXPECT_NEAR(taps.weights[1], one * 3 / 7, 1);
  EXPECT_NEAR(taps.weights[2], one * 1 / 7, 1);
  EXPECT_EQ(taps.weights[3], 0);
  // Output 1: center 3, inputs 1.5 to 4.5 weigh 0.25, 0.75, 0.75, 0.25.
  EXPECT_EQ(taps.weights[4], (1 << kBilinearBits) / 8);
  EXPECT_EQ(taps.weights[5], (1 << kBilinearBits) / 8 * 3);
  EXPECT_EQ(taps.weights[6], (1 << kBilinearBits) / 8 * 3);
  EXPECT_EQ(taps.weights[7], (1 << kBilinearBits) / 8);
}

TEST(BilinearTapsTest, SameSizeIsTheIdentity) {
  const Taps<int> taps = BilinearTaps(5, 5);
  for (int i = 0; i < 5; ++i) {
    for (int t = 0; t < taps.width; ++t) {
      EXPECT_EQ(taps.weights[i * taps.width + t], taps.first[i] + t == i ? 1 << kBilinearBits : 0);
    }
  }
}

TEST(AreaTapsTest, SharesByHand) {
  const Taps<float> taps = AreaTaps(5, 2);  // intervals [0, 2.5] and [2.5, 5]
  ASSERT_EQ(taps.width, 3);
  EXPECT_EQ(taps.first, (std::vector<int>{0, 2}));
  EXPECT_EQ(taps.weights, (std::vector<float>{0.4f, 0.4f, 0.2f, 0.2f, 0.4f, 0.4f}));
}

template <typename Weight>
void CheckWindows(const Taps<Weight>& taps, int in, double total, double tolerance) {
  for (int i = 0; i < taps.outputs(); ++i) {
    EXPECT_GE(taps.first[i], 0);
    EXPECT_LE(taps.first[i] + taps.width, in);
    double sum = 0;
    for (int t = 0; t < taps.width; ++t) sum += taps.weights[i * taps.width + t];
    EXPECT_NEAR(sum, total, tolerance);
  }
}

TEST(TapsTest, WindowsStayInsideAndWeightsAddUp) {
  for (const int in : {160, 210, 250}) {
    for (const int out : {16, 64, 80, 84, 96, 160}) {
      CheckWindows(BilinearTaps(in, out), in, 1 << kBilinearBits, 6);
      CheckWindows(AreaTaps(in, out), in, 1, 1e-5);
    }
  }
}

}  // namespace
}  // namespace uper::atari
