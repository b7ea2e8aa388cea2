#include "uper/replay/storage/mask_store.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

RandomStream Masks() { return {1, "bootstrap masks"}; }

TEST(MaskStore, EachMemberIsBernoulliAndPairsAreIndependent) {
  constexpr int kRows = 100'000;
  constexpr double kProbability = 0.3;
  MaskStore masks(kRows, {.members = 10, .probability = kProbability}, Masks());
  std::array<std::array<int, 10>, 10> both{};
  for (int id = 0; id < kRows; ++id) {
    masks.Draw(static_cast<std::uint64_t>(id));
    const std::uint64_t mask = masks.Get(static_cast<std::uint64_t>(id));
    for (std::size_t i = 0; i < 10; ++i) {
      for (std::size_t j = 0; j <= i; ++j) both[i][j] += (mask >> i) & (mask >> j) & 1U ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double p = i == j ? kProbability : kProbability * kProbability;
      EXPECT_NEAR(both[i][j], kRows * p, 5 * std::sqrt(kRows * p * (1 - p)));
    }
  }
  masks.CheckValid();
}

TEST(MaskStore, PacksAnyNumberOfMembers) {
  for (std::size_t members = 1; members <= 64; ++members) {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - members);
    MaskStore ones(3, {.members = members, .probability = 1}, Masks());
    MaskStore zeros(3, {.members = members, .probability = 0}, Masks());
    EXPECT_EQ(ones.bytes_per_mask(), (members + 7) / 8);
    for (std::uint64_t id = 0; id < 7; ++id) {
      ones.Draw(id);
      zeros.Draw(id);
      EXPECT_EQ(ones.Get(id), all);
      EXPECT_EQ(zeros.Get(id), 0U);
    }
    ones.CheckValid();
  }
}

// A mask depends on seed and id alone, so the ring's size or a restart cannot change it.
TEST(MaskStore, AMaskDoesNotChangeWithCapacityOrResume) {
  const MaskStoreOptions options{.members = 13, .probability = 0.5};
  MaskStore large(100, options, Masks());
  MaskStore small(10, options, Masks());
  for (std::uint64_t id = 0; id < 40; ++id) {
    large.Draw(id);
    small.Draw(id);
    EXPECT_EQ(large.Get(id), small.Get(id));
  }
  MaskStore restored(10, options, Masks());
  restored.SetState(small.GetState(31, 40), 31, 40);
  for (std::uint64_t id = 31; id < 40; ++id) EXPECT_EQ(restored.Get(id), large.Get(id));
  for (std::uint64_t id = 40; id < 60; ++id) {
    large.Draw(id);
    restored.Draw(id);
    EXPECT_EQ(restored.Get(id), large.Get(id));
  }
}

TEST(MaskStore, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(MaskStore(3, {.members = 0}, Masks()), Error);
  EXPECT_THROW(MaskStore(3, {.members = 65}, Masks()), Error);
  EXPECT_THROW(MaskStore(3, {.members = 1, .probability = 1.5}, Masks()), Error);
  EXPECT_THROW(MaskStore(3, {.members = 1, .probability = std::nan("")}, Masks()), Error);
  MaskStore masks(3, {.members = 9}, Masks());
  EXPECT_THROW(masks.SetState(masks.GetState(0, 2), 0, 3), Error);
}

}  // namespace
}  // namespace uper
