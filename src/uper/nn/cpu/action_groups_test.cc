#include "uper/nn/cpu/action_groups.h"

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/error.h"

namespace uper::cpu {
namespace {

std::vector<int> SamplesOf(const ActionGroups& groups, int list, int action) {
  const std::span<const int> samples = groups.Samples(list, action);
  return {samples.begin(), samples.end()};
}

TEST(ActionGroupsTest, SortsEachListByActionKeepingTheOrder) {
  ActionGroups groups(3, 2, 8);
  const std::vector<int> chosen{2, 0, /**/ 0, 0, /**/ 2, 1, /**/ 0, 0};
  groups.Build(chosen, 4, 2);
  EXPECT_EQ(SamplesOf(groups, 0, 0), (std::vector<int>{1, 3}));
  EXPECT_EQ(SamplesOf(groups, 0, 1), std::vector<int>{});
  EXPECT_EQ(SamplesOf(groups, 0, 2), (std::vector<int>{0, 2}));
  EXPECT_EQ(SamplesOf(groups, 1, 0), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(SamplesOf(groups, 1, 1), std::vector<int>{2});
  groups.Build(std::vector<int>{1}, 1, 1);
  EXPECT_EQ(SamplesOf(groups, 0, 0), std::vector<int>{});
  EXPECT_EQ(SamplesOf(groups, 0, 1), std::vector<int>{0});
}

TEST(ActionGroupsTest, RefusesWhatDoesNotFit) {
  ActionGroups groups(3, 1, 2);
  EXPECT_THROW(groups.Build(std::vector<int>{0, 3}, 2, 1), Error);
  EXPECT_THROW(groups.Build(std::vector<int>{0, -1}, 2, 1), Error);
  EXPECT_THROW(groups.Build(std::vector<int>{0, 1, 2}, 3, 1), Error);
  EXPECT_THROW(groups.Build(std::vector<int>{0}, 2, 1), Error);
}

}  // namespace
}  // namespace uper::cpu
