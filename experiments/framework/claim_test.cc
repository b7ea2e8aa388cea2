#include "experiments/framework/claim.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace uper::experiments {
namespace {

const ClaimText kText{"1a", "statement", "L1", "statistic"};

Verdict Positive(const std::vector<double>& per_seed) {
  return ClaimPositive(kText, per_seed).verdict;
}
Verdict Within(const std::vector<double>& per_seed) {
  return ClaimWithin(kText, per_seed, 1).verdict;
}

TEST(ClaimTest, PositiveFollowsTheInterval) {
  EXPECT_EQ(Positive({1, 2, 3}), Verdict::kHolds);
  EXPECT_EQ(Positive({-1, -2, -3}), Verdict::kFails);
  EXPECT_EQ(Positive({-1, 1, 2, -2}), Verdict::kUndecided);
  EXPECT_EQ(Positive({0, 0, 0}), Verdict::kFails);  // exactly nothing is not a gain
  EXPECT_EQ(Positive({5}), Verdict::kUndecided);    // one seed decides nothing
}

TEST(ClaimTest, WithinFollowsTheInterval) {
  EXPECT_EQ(Within({0.1, -0.2, 0.3}), Verdict::kHolds);
  EXPECT_EQ(Within({3, 4, 5}), Verdict::kFails);
  EXPECT_EQ(Within({-3, -4, -5}), Verdict::kFails);
  EXPECT_EQ(Within({0.5, 0.9, 3}), Verdict::kUndecided);
}

TEST(ClaimTest, ExactClaimsAreTheirOwnInterval) {
  const Claim claim = ClaimExact(kText, 0.25, true);
  EXPECT_EQ(claim.interval.low, 0.25);
  EXPECT_EQ(claim.interval.high, 0.25);
  EXPECT_EQ(claim.verdict, Verdict::kHolds);
}

TEST(ClaimTest, FileHasTheDocumentedFields) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "claims.json";
  WriteClaims(file, std::vector<Claim>{ClaimPositive(kText, std::vector<double>{1, 2}),
                                       ClaimPositive(kText, std::vector<double>{1})});
  std::ifstream stream(file);
  const auto json = nlohmann::ordered_json::parse(stream);
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["id"], "1a");
  EXPECT_EQ(json[0]["value"], 1.5);
  EXPECT_EQ(json[0]["verdict"], "holds");
  EXPECT_TRUE(json[1]["ci_low"].is_null());
}

}  // namespace
}  // namespace uper::experiments
