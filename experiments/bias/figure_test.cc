#include "experiments/bias/entropy/figure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/bias/error/figure.h"
#include "experiments/bias/study.h"
#include "experiments/framework/figure_runner_for_tests.h"

namespace uper::experiments::bias {
namespace {

const std::map<std::string, std::string> kSmall = {{"entries", "2000"}, {"intervals", "10"}};

TEST(BiasFigureTest, ResultsDoNotDependOnJobs) {
  for (const Figure& figure : {entropy::MakeFigure(), error::MakeFigure()}) {
    FigureTestRunner one(figure.id + "-one");
    FigureTestRunner three(figure.id + "-three");
    one.Run(figure, 3, 1, kSmall);
    three.Run(figure, 3, 3, kSmall);
    EXPECT_EQ(one.Files(), three.Files());
    EXPECT_EQ(one.open_tasks(), 0);
  }
}

TEST(BiasFigureTest, FilesHaveARowForEverything) {
  FigureTestRunner entropy("entropy-rows");
  entropy.Run(entropy::MakeFigure(), 2, 2, kSmall);
  const std::string data = entropy.Files().at("data.csv");
  EXPECT_TRUE(data.starts_with("panel,form,seed,bias,entropy\na,epistemic,1,0,"));
  EXPECT_EQ(std::count(data.begin(), data.end(), '\n'), 1 + 8 * 4 * 2 * 11);
  const std::string closed_form = entropy.Files().at("closed_form.csv");
  EXPECT_EQ(std::count(closed_form.begin(), closed_form.end(), '\n'), 1 + 8 * 4 * 11);

  FigureTestRunner error("error-rows");
  error.Run(error::MakeFigure(), 2, 2, kSmall);
  const std::string rows = error.Files().at("data.csv");
  EXPECT_TRUE(rows.starts_with("panel,form,seed,bias,error_mean,error_sd\na,epistemic,1,0,0,0\n"));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 8 * 4 * 2 * 11);
}

TEST(BiasFigureTest, EntropyClaims) {
  FigureTestRunner runner("entropy-claims");
  const std::vector<Claim> claims = runner.Run(entropy::MakeFigure(), 3, 2, kSmall);
  EXPECT_EQ(FindClaim(claims, "30a").verdict, Verdict::kHolds);
  EXPECT_LT(FindClaim(claims, "31a").interval.low, FindClaim(claims, "31a").interval.high);
  // Largest Var(x) / (2 C^2) at C = 100: E^3/U in panel h, Var = 5 * 9 * (1 - 2 / pi).
  EXPECT_NEAR(FindClaim(claims, "30a").interval.value, 16.35 / 2e4, 1e-4);
  // Where the closed forms leave no doubt: Var(eta - beta) / Var(eta) is 10 in b, 10 / 9 in c.
  EXPECT_EQ(FindClaim(claims, "37b.b").verdict, Verdict::kHolds);
  EXPECT_EQ(FindClaim(claims, "37b.c").verdict, Verdict::kFails);
  EXPECT_EQ(FindClaim(claims, "37b").verdict, Verdict::kFails);  // one panel is enough
}

TEST(BiasFigureTest, ErrorClaims) {
  FigureTestRunner runner("error-claims");
  const std::vector<Claim> claims = runner.Run(error::MakeFigure(), 3, 2, kSmall);
  EXPECT_EQ(FindClaim(claims, "30b").verdict, Verdict::kHolds);
  EXPECT_EQ(FindClaim(claims, "34a").verdict, Verdict::kHolds);
  // Var(eta) / m^2 = 1/3 is the unit: at C = 10 a step of m is worth about 2 m / C = 0.1 in a.
  EXPECT_NEAR(FindClaim(claims, "34a.a").interval.value, 0.09, 0.01);
  EXPECT_EQ(FindClaim(claims, "34c.f").verdict, Verdict::kHolds);
  EXPECT_EQ(FindClaim(claims, "34c.c").verdict, Verdict::kFails);
}

TEST(BiasFigureTest, PanelClaimsTakeTheWorstPanel) {
  const PanelStatistic statistic = [](std::size_t panel, std::size_t seed) {
    return static_cast<double>(panel) - 0.5 + 0.01 * static_cast<double>(seed);
  };
  const PanelGrid grid{.panels = 3, .seeds = 2};
  EXPECT_EQ(SmallestPanel(grid, statistic), (std::vector<double>{-0.5, -0.49}));
  EXPECT_EQ(LargestPanel(grid, statistic), (std::vector<double>{1.5, 1.51}));
  std::vector<Claim> claims = PositiveInPanels(
      grid, statistic)({.id = "1x", .statement = "", .where_in_paper = "", .statistic = ""});
  ASSERT_EQ(claims.size(), 4u);
  EXPECT_EQ(claims[0].verdict, Verdict::kFails);
  EXPECT_EQ(claims[1].id, "1x.a");
  EXPECT_EQ(claims[1].verdict, Verdict::kFails);
  EXPECT_EQ(claims[3].id, "1x.c");
  EXPECT_EQ(claims[3].verdict, Verdict::kHolds);
  claims = WithinInPanels(
      {.panels = 2, .seeds = 2},
      [](std::size_t panel, std::size_t) { return panel == 0 ? -2.0 : 0.5; },
      1)({.id = "2x", .statement = "", .where_in_paper = "", .statistic = ""});
  EXPECT_EQ(claims[0].interval.value, 2);
  EXPECT_EQ(claims[0].verdict, Verdict::kFails);
  EXPECT_EQ(claims[2].verdict, Verdict::kHolds);
}

TEST(BiasFigureTest, LastFallThroughZero) {
  const std::vector<double> at = {0, 1, 2, 3};
  const auto fall = [&](std::vector<double> y) { return error::LastFallThroughZero(at, y); };
  EXPECT_DOUBLE_EQ(fall({3, 1, -1, -1}), 1.5);
  EXPECT_DOUBLE_EQ(fall({1, -1, 3, -1}), 2.75);  // the last of two
  EXPECT_DOUBLE_EQ(fall({1, 1, 1, 1}), 3);
  EXPECT_DOUBLE_EQ(fall({-1, -1, -1, -1}), 0);
}

TEST(BiasFigureTest, NormalParameterReachesTheDensities) {
  FigureTestRunner runner("normal-parameter");
  auto assigned = kSmall;
  assigned["normal_parameter"] = "variance";
  runner.Run(entropy::MakeFigure(), 2, 1, assigned);
  EXPECT_NE(runner.Files().at("panels.csv").find("f,half_normal,1,half_normal,1.7320508"),
            std::string::npos);
}

}  // namespace
}  // namespace uper::experiments::bias
