#include "uper/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123's own test (kat_vectors, philox4x32 10).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  constexpr std::uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      Philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      (Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

// Computed by a separate program: key from (seed, name), counter (block, index). A change here
// changes every run of every user.
TEST(RandomStreamTest, WordsAreThoseOfTheDefinition) {
  const std::uint64_t index = (std::uint64_t{3} << 32) | 5;
  RandomStream stream(7, "replay draws", index);
  for (const std::uint32_t word : {0x1a21c766u, 0x49a7fab1u, 0xab0e1a78u, 0x81641a32u, 0x2374769bu,
                                   0x9d99e736u, 0xecc3fa94u, 0xa8f312dfu}) {
    EXPECT_EQ(stream.NextUint32(), word);
  }
  stream.set_position(4 * ((std::uint64_t{1} << 32) + 1));  // both words of the block number count
  for (const std::uint32_t word : {0xcd037ee3u, 0xb747732cu, 0xe7f905d9u, 0x7199eb7bu}) {
    EXPECT_EQ(stream.NextUint32(), word);
  }
}

TEST(RandomStreamTest, SetPositionContinuesFromEveryOffset) {
  RandomStream stream(1, "position");
  std::vector<std::uint32_t> words(41);
  for (std::uint32_t& word : words) word = stream.NextUint32();
  for (std::uint64_t start = 0; start <= 36; ++start) {
    RandomStream fresh(1, "position");
    fresh.set_position(start);
    stream.set_position(start);  // also backwards, from another place
    for (std::uint64_t i = start; i < start + 5; ++i) {
      EXPECT_EQ(fresh.position(), i);
      EXPECT_EQ(fresh.NextUint32(), words[i]);
      EXPECT_EQ(stream.NextUint32(), words[i]);
    }
  }
}

TEST(RandomStreamTest, EachDistributionConsumesWhatItPromises) {
  RandomStream stream(1, "consumption");
  stream.NextUint32();
  EXPECT_EQ(stream.position(), 1u);
  stream.NextUint64();
  EXPECT_EQ(stream.position(), 3u);
  stream.Uniform();
  EXPECT_EQ(stream.position(), 5u);
  stream.Bernoulli(0.5);
  EXPECT_EQ(stream.position(), 7u);
  stream.Normal();
  EXPECT_EQ(stream.position(), 9u);
}

TEST(RandomStreamTest, StreamsDifferBySeedNameAndIndex) {
  std::set<std::uint64_t> first_words;
  int streams = 0;
  for (const std::uint64_t seed : {0ull, 1ull, 2ull, 1ull << 32, ~0ull}) {
    for (const char* name : {"", "a", "b", "ab", "ba"}) {
      for (const std::uint64_t index : {0ull, 1ull, 1ull << 32, ~0ull}) {
        first_words.insert(RandomStream(seed, name, index).NextUint64());
        ++streams;
      }
    }
  }
  // 100 draws of 64 bits: an accidental collision has probability 3e-16.
  EXPECT_EQ(first_words.size(), static_cast<std::size_t>(streams));
  EXPECT_EQ(RandomStream(1, "a", 2).NextUint64(), RandomStream(1, "a", 2).NextUint64());
}

TEST(RandomStreamTest, NeighboringStreamsAreUncorrelated) {
  // The mean product of N = 20000 pairs of centered uniforms has standard deviation
  // 1 / (12 sqrt(N)) = 5.9e-4; the bound is four of them.
  RandomStream a(1, "streams", 0);
  RandomStream b(1, "streams", 1);
  RandomStream c(2, "streams", 0);
  double ab = 0;
  double ac = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = a.Uniform() - 0.5;
    ab += x * (b.Uniform() - 0.5) / 20000;
    ac += x * (c.Uniform() - 0.5) / 20000;
  }
  EXPECT_NEAR(ab, 0, 2.4e-3);
  EXPECT_NEAR(ac, 0, 2.4e-3);
}

TEST(RandomStreamTest, UniformIsInTheUnitIntervalWithItsMoments) {
  // N = 100000: the mean has standard deviation 0.2887 / sqrt(N) = 9.1e-4, the mean of squares
  // 0.2981 / sqrt(N) = 9.4e-4; four of them.
  RandomStream stream(2, "uniform");
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = stream.Uniform();
    ASSERT_TRUE(x >= 0 && x < 1);
    EXPECT_EQ(x * 0x1p53, std::floor(x * 0x1p53));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0.5, 3.7e-3);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 3.8e-3);
}

TEST(RandomStreamTest, UniformIntChiSquare) {
  // 70000 draws into 7 cells: chi-square with 6 degrees of freedom, 99.99 % point 27.86. A cell
  // that is 5 % too likely would add about 25 by itself and 29 with what the others lack.
  RandomStream stream(3, "integers");
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[stream.UniformInt(7)];
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 27.86);
  EXPECT_GT(chi_square, 0.1);  // equal counts would not be random: 0.01 % point 0.14
}

TEST(RandomStreamTest, UniformIntHasNoBiasForLargeRanges) {
  // For 3 * 2^62 values the high word of random * bound alone would be a multiple of 3 with
  // probability 1/2 instead of 1/3. N = 10000: standard deviation 0.0047; four of them.
  RandomStream stream(4, "integers");
  const std::uint64_t bound = std::uint64_t{3} << 62;
  int multiples = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t x = stream.UniformInt(bound);
    ASSERT_LT(x, bound);
    multiples += x % 3 == 0 ? 1 : 0;
  }
  EXPECT_NEAR(multiples / 1e4, 1.0 / 3, 0.019);
}

TEST(RandomStreamTest, UniformIntOfOneIsZeroAndOfNoneAnError) {
  RandomStream stream(5, "integers");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stream.UniformInt(1), 0u);
  EXPECT_THROW(stream.UniformInt(0), Error);
}

TEST(RandomStreamTest, BernoulliHasItsProbability) {
  // N = 40000, p = 0.3: standard deviation sqrt(0.21 / N) = 0.0023; four of them.
  RandomStream stream(6, "bernoulli");
  int successes = 0;
  for (int i = 0; i < 40000; ++i) successes += stream.Bernoulli(0.3) ? 1 : 0;
  EXPECT_NEAR(successes / 4e4, 0.3, 0.0092);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(stream.Bernoulli(0));
    EXPECT_TRUE(stream.Bernoulli(1));
  }
}

TEST(RandomStreamTest, NormalMoments) {
  // N = 200000; standard deviations of the sample moments: mean 1/sqrt(N) = 0.00224, square
  // sqrt(2/N) = 0.00316, third power sqrt(15/N) = 0.00866, fourth sqrt(96/N) = 0.0219, share
  // beyond 1.96 sqrt(0.05 * 0.95 / N) = 0.00049. Bounds are four of them.
  RandomStream stream(7, "normal");
  const int n = 200000;
  double power[5] = {};
  int beyond = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.Normal();
    for (int p = 1; p <= 4; ++p) power[p] += std::pow(x, p) / n;
    beyond += std::abs(x) > 1.959963984540054 ? 1 : 0;
  }
  EXPECT_NEAR(power[1], 0, 0.0090);
  EXPECT_NEAR(power[2], 1, 0.0127);
  EXPECT_NEAR(power[3], 0, 0.0347);
  EXPECT_NEAR(power[4], 3, 0.0877);
  EXPECT_NEAR(static_cast<double>(beyond) / n, 0.05, 0.00195);
}

TEST(NormalQuantileTest, HandValues) {
  EXPECT_EQ(NormalQuantile(0.5), 0);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(NormalQuantile(0.025), -1.959963984540054, 1e-14);
  EXPECT_NEAR(NormalQuantile(0.75), 0.6744897501960817, 1e-15);
  EXPECT_NEAR(NormalQuantile(0.8413447460685429), 1, 1e-14);
  EXPECT_NEAR(NormalQuantile(0.9), 1.2815515655446004, 1e-14);
  EXPECT_NEAR(NormalQuantile(1e-10), -6.361340902404056, 1e-13);
}

TEST(NormalQuantileTest, InvertsTheDistributionFunction) {
  // A relative error of 1e-15 of x moves the tail probability by about x^2 * 1e-15 relatively:
  // 1.4e-12 at x = 37.
  double p = 1e-300;
  while (p < 0.5) {
    const double x = NormalQuantile(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 3e-15 * (1 + x * x)) << p;
    if (p > 1e-3) {
      EXPECT_NEAR(NormalQuantile(1 - p), -x, 1e-12);
    }
    p = p * 1.37 + (p > 1e-3 ? 1e-3 : 0);
  }
}

}  // namespace
}  // namespace uper
