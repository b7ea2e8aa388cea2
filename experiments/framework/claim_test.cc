#include "experiments/framework/claim.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace uper::experiments {
namespace {

const ClaimText kText{"1a", "statement", "L1", "statistic"};

Verdict PositiveVerdict(const std::vector<double>& per_seed) {
  return ClaimPositive(kText, per_seed).verdict;
}
Verdict WithinVerdict(const std::vector<double>& per_seed) {
  return ClaimWithin(kText, per_seed, 1).verdict;
}

TEST(ClaimTest, PositiveFollowsTheInterval) {
  EXPECT_EQ(PositiveVerdict({1, 2, 3}), Verdict::kHolds);
  EXPECT_EQ(PositiveVerdict({-1, -2, -3}), Verdict::kFails);
  EXPECT_EQ(PositiveVerdict({-1, 1, 2, -2}), Verdict::kUndecided);
  EXPECT_EQ(PositiveVerdict({0, 0, 0}), Verdict::kFails);  // a gain of exactly 0 is no gain
  EXPECT_EQ(PositiveVerdict({5}), Verdict::kUndecided);    // one seed decides nothing
}

TEST(ClaimTest, WithinFollowsTheInterval) {
  EXPECT_EQ(WithinVerdict({0.1, -0.2, 0.3}), Verdict::kHolds);
  EXPECT_EQ(WithinVerdict({3, 4, 5}), Verdict::kFails);
  EXPECT_EQ(WithinVerdict({-3, -4, -5}), Verdict::kFails);
  EXPECT_EQ(WithinVerdict({0.5, 0.9, 3}), Verdict::kUndecided);
}

TEST(ClaimTest, ExactClaimsAreTheirOwnInterval) {
  const Claim claim = ClaimExact(kText, 0.25, true);
  EXPECT_EQ(claim.interval.low, 0.25);
  EXPECT_EQ(claim.interval.high, 0.25);
  EXPECT_EQ(claim.verdict, Verdict::kHolds);
}

TEST(ClaimTest, ATableGivesTheClaimsOfItsRowsInOrder) {
  const std::vector<ClaimRow> table = {{kText, Positive({1, 2, 3})},
                                       {{"2", "", "", ""}, Within({3, 4, 5}, 1)},
                                       {{"3", "", "", ""}, Exact(0.5, false)},
                                       {{"4", "", "", ""}, [](const ClaimText& text) {
                                          return std::vector{ClaimExact(text, 1, true),
                                                             ClaimExact(text, 2, true)};
                                        }}};
  const std::vector<Claim> claims = TestClaims(table);
  ASSERT_EQ(claims.size(), 5u);
  EXPECT_EQ(claims[0].statement, "statement");
  EXPECT_EQ(claims[0].verdict, Verdict::kHolds);
  EXPECT_EQ(claims[1].verdict, Verdict::kFails);
  EXPECT_EQ(claims[2].interval.value, 0.5);
  EXPECT_EQ(claims[2].verdict, Verdict::kFails);
  EXPECT_EQ(claims[4].id, "4");
  EXPECT_EQ(claims[4].interval.value, 2);
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
