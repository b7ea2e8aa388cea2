#include "experiments/phase/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "experiments/framework/figure_runner_for_tests.h"
#include "uper/base/error.h"

namespace uper::experiments::phase {
namespace {

// E = 3, A = 1, U = 4.
TEST(PhaseTest, PrioritiesByHand) {
  EXPECT_NEAR(PhasePriority(PriorityRule::kInfoGain, 3, 1), std::log(2.0), 1e-9);
  EXPECT_NEAR(PhasePriority(PriorityRule::kRatioEa, 3, 1), 3, 1e-9);
  EXPECT_NEAR(PhasePriority(PriorityRule::kRatioEu, 3, 1), 0.75, 1e-9);
  EXPECT_NEAR(PhasePriority(PriorityRule::kRatioE2u, 3, 1), 2.25, 1e-9);
  EXPECT_NEAR(PhasePriority(PriorityRule::kRatioE3u, 3, 1), 6.75, 1e-9);
  EXPECT_NEAR(PhasePriority(PriorityRule::kEpistemic, 3, 1), 3, 1e-9);
  EXPECT_NEAR(PhasePriority(PriorityRule::kTotal, 3, 1), 4, 1e-9);
}

// E^m / U is homogeneous of degree m - 1, E/A and the information gain of degree 0.
TEST(PhaseTest, ElasticityIsTheDegreeOfHomogeneity) {
  const std::vector<double> grid = {0.01, 0.5, 1, 100};
  const std::vector<double> degrees = {0, 0, 0, 1, 2, 1, 1};  // in the order of PhaseRules
  ASSERT_EQ(PhaseRules().size(), degrees.size());
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    const ElasticityRange range = DiagonalElasticities(PhaseRules()[i], grid);
    EXPECT_NEAR(range.smallest, degrees[i], 1e-9) << PriorityRuleName(PhaseRules()[i]);
    EXPECT_NEAR(range.largest, degrees[i], 1e-9) << PriorityRuleName(PhaseRules()[i]);
  }
}

TEST(PhaseFigureTest, WritesTheWholeGrid) {
  FigureTestRunner runner("phase");
  runner.Run(MakeFigure(), 1, 1, {{"points", "3"}, {"low", "1"}, {"high", "100"}});
  const std::string data = runner.Files().at("data.csv");
  EXPECT_EQ(std::count(data.begin(), data.end(), '\n'), 1 + 7 * 9);
  EXPECT_NE(data.find("epistemic,10,100,10\n"), std::string::npos);
  EXPECT_NE(data.find("total,100,10,110\n"), std::string::npos);
}

TEST(PhaseFigureTest, LinearAxis) {
  FigureTestRunner runner("phase-linear");
  runner.Run(MakeFigure(), 1, 1,
             {{"points", "3"}, {"low", "1"}, {"high", "101"}, {"axis", "linear"}});
  EXPECT_NE(runner.Files().at("data.csv").find("epistemic,51,101,51\n"), std::string::npos);
}

// L541 as written: neither form prefers low epistemic uncertainty at equal ratio, and E/U is
// constant along the diagonal.
TEST(PhaseFigureTest, Claims) {
  FigureTestRunner runner("phase-claims");
  const std::vector<Claim> claims = runner.Run(MakeFigure(), 1, 1, {});
  EXPECT_EQ(FindClaim(claims, "38a").verdict, Verdict::kFails);
  EXPECT_EQ(FindClaim(claims, "38b").verdict, Verdict::kFails);
  EXPECT_EQ(FindClaim(claims, "38c").verdict, Verdict::kHolds);
  EXPECT_EQ(FindClaim(claims, "38d").verdict, Verdict::kFails);
  EXPECT_NEAR(FindClaim(claims, "38d").interval.value, 1, 1e-9);
  EXPECT_EQ(FindClaim(claims, "38e").verdict, Verdict::kHolds);
}

TEST(PhaseFigureTest, RefusesAnEmptyRange) {
  FigureTestRunner runner("phase-empty");
  EXPECT_THROW(runner.Run(MakeFigure(), 1, 1, {{"low", "2"}, {"high", "2"}}), Error);
  EXPECT_TRUE(runner.Files().empty());
}

}  // namespace
}  // namespace uper::experiments::phase
