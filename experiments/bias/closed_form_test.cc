#include "experiments/bias/closed_form.h"

#include <gtest/gtest.h>

#include <cmath>

namespace uper::experiments::bias {
namespace {

constexpr double kEntries = 1e5;

// By hand at C = 0: E[y] = b/2, E[y ln y] = b/2 (ln b - 1/2), H = ln N + ln(b/2) - ln b + 1/2.
TEST(BiasClosedFormTest, VanillaUniformWithoutBias) {
  for (const double b : {1.0, 3.0}) {
    EXPECT_NEAR(VanillaUniformEntropy(b, 0, kEntries), std::log(kEntries) - std::log(2.0) + 0.5,
                1e-12);
  }
}

TEST(BiasClosedFormTest, IntegrationMeetsTheVanillaClosedForm) {
  for (const int panel : {0, 2}) {
    const BiasPanel densities = BiasPanels()[panel];
    for (const double bias : {0.0, 0.05, 1.0, 10.0}) {
      EXPECT_NEAR(IntegrateBias(densities, bias, kEntries).entropy[kVanilla],
                  VanillaUniformEntropy(densities.eta.scale, bias, kEntries), 1e-9)
          << "C " << bias;
    }
  }
}

// E/U of panel a at C = 0: p = eta / (eta + beta), both U(0,1). Its density is
// 1 / (2 max(p, 1 - p)^2), so E[p] = 1/2 and E[p^2] = (3/4 - ln 2) + 1/4; by parts,
// E[p eta] = integral of x^2 ln((1 + x) / x) over [0, 1] = (2 ln 2 - 1/2) / 3.
TEST(BiasClosedFormTest, IntegrationOfTheRatioByHand) {
  const double mean_square = 1 - std::log(2.0);
  const double product = (2 * std::log(2.0) - 0.5) / 3;
  EXPECT_NEAR(IntegrateBias(BiasPanels()[0], 0, 1).error_mean[kEu],
              4 * mean_square - 8 * product + 4.0 / 3, 1e-6);
}

TEST(BiasClosedFormTest, ExpansionIsTheLimitOfTheIntegral) {
  for (const BiasPanel& panel : BiasPanels()) {
    const double bias = 3000;
    const BiasPopulation exact = IntegrateBias(panel, bias, kEntries);
    const BiasPopulation expansion = LargeBias(panel, bias, kEntries);
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      const double gap = std::log(kEntries) - exact.entropy[form];
      EXPECT_NEAR((std::log(kEntries) - expansion.entropy[form]) / gap, 1, 0.02);
      // The second term of the error must be right too, not the leading one alone.
      const double unit = kEntries * kEntries;
      const double leading = panel.eta.Variance() / (panel.eta.Mean() * panel.eta.Mean());
      EXPECT_NEAR(exact.error_mean[form] * unit - leading,
                  expansion.error_mean[form] * unit - leading, 1e-5);
    }
  }
}

// The paper's U(0,1) axis ends just above this value.
TEST(BiasClosedFormTest, LimitOfTheUniformPanel) {
  EXPECT_NEAR(LargeBias(BiasPanels()[0], 1e9, kEntries).error_mean[kEu], 3.3333e-11, 1e-14);
}

}  // namespace
}  // namespace uper::experiments::bias
