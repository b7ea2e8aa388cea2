#include "uper/core/priority.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"
#include "uper/core/other_decompositions.h"

namespace uper {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// All rules except for those that a test registered.
std::span<const PriorityRule> BuiltInRules() {
  return AllPriorityRules().first(std::size(kPriorityRules));
}

// The fields that a rule may read, independent of the implementation.
std::vector<double PriorityInputs::*> PlainField(PriorityRule rule) {
  switch (rule) {
    case PriorityRule::kTd:
      return {&PriorityInputs::td_error};
    case PriorityRule::kCounts:
      return {&PriorityInputs::visits};
    case PriorityRule::kOracle:
      return {&PriorityInputs::oracle_distance};
    default:
      return {};
  }
}

std::vector<double Uncertainty::*> UncertaintyFields(PriorityRule rule) {
  const std::string name(PriorityRuleName(rule));
  const bool delta = name.ends_with("_delta");
  if (name.starts_with("total")) return {delta ? &Uncertainty::total_delta : &Uncertainty::total};
  if (!name.starts_with("epistemic") && !name.starts_with("info") && !name.starts_with("ratio")) {
    return {};
  }
  std::vector<double Uncertainty::*> fields = {delta ? &Uncertainty::epistemic_delta
                                                     : &Uncertainty::epistemic};
  if (!name.starts_with("epistemic")) fields.push_back(&Uncertainty::aleatoric);
  return fields;
}

PriorityInputs AllNan() {
  return {.uncertainty = {kNan, kNan, kNan, kNan, kNan, kNan, kNan},
          .td_error = kNan,
          .visits = kNan,
          .oracle_distance = kNan};
}

// `main` is the value of the field that a rule starts from, `aleatoric` that of A if the rule reads
// it. The fields that the rule must not read are NaN.
PriorityInputs InputsFor(PriorityRule rule, double main, double aleatoric) {
  PriorityInputs inputs = AllNan();
  for (const auto field : PlainField(rule)) inputs.*field = main;
  for (const auto field : UncertaintyFields(rule)) inputs.uncertainty.*field = main;
  if (UncertaintyFields(rule).size() == 2) inputs.uncertainty.aleatoric = aleatoric;
  return inputs;
}

double Value(PriorityRule rule, double main, double aleatoric, const PriorityLimits& limits = {}) {
  return ComputePriority(rule, InputsFor(rule, main, aleatoric), limits).value;
}

bool DividesByAleatoric(PriorityRule rule) { return UncertaintyFields(rule).size() == 2; }

TEST(PriorityRuleTest, NamesRoundTripAndTheListIsComplete) {
  const std::vector<std::string> names = {"uniform",   "td",
                                          "counts",    "oracle",
                                          "total",     "total_delta",
                                          "epistemic", "epistemic_delta",
                                          "info_gain", "info_gain_delta",
                                          "ratio_ea",  "ratio_ea_delta",
                                          "ratio_eu",  "ratio_eu_delta",
                                          "ratio_e2u", "ratio_e2u_delta",
                                          "ratio_e3u", "ratio_e3u_delta"};
  ASSERT_EQ(BuiltInRules().size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PriorityRule rule = BuiltInRules()[i];
    EXPECT_EQ(static_cast<std::size_t>(rule), i);
    EXPECT_EQ(PriorityRuleName(rule), names[i]);
    EXPECT_EQ(PriorityRuleFromName(names[i]), rule);
  }
}

TEST(PriorityRuleTest, UnknownNamesAreNone) {
  for (const char* name : {"", "uper", "TD", "td ", "info_gain_"}) {
    EXPECT_FALSE(PriorityRuleFromName(name).has_value()) << name;
  }
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): on purpose
  const auto no_rule = static_cast<PriorityRule>(1000);
  EXPECT_THROW(PriorityRuleName(no_rule), Error);
  EXPECT_TRUE(std::isnan(ComputePriority(no_rule, {}, {}).value));
}

TEST(PriorityRuleTest, TheTableSaysWhatTheFormulasDo) {
  for (const PriorityRuleInfo& info : kPriorityRules) {
    SCOPED_TRACE(info.name);
    const auto plain = PlainField(info.rule);
    const auto reads = [&](double PriorityInputs::* field) {
      return std::find(plain.begin(), plain.end(), field) != plain.end();
    };
    EXPECT_EQ(info.needs.td_error, reads(&PriorityInputs::td_error));
    EXPECT_EQ(info.needs.visits, reads(&PriorityInputs::visits));
    EXPECT_EQ(info.needs.truth, reads(&PriorityInputs::oracle_distance));
    EXPECT_EQ(info.needs.uncertainty, !UncertaintyFields(info.rule).empty());
    // Without noise a rule that divides by A alone is limited by the floor only.
    const double value = Value(info.rule, 1, 0, {.aleatoric_floor = 1e-100, .cap = 1e200});
    EXPECT_EQ(info.divides_by_aleatoric, value > 100) << value;
    // One member: E = 0, all else is positive.
    const PriorityInputs one = {.uncertainty = {.aleatoric = 1,
                                                .target_distance_sq = 1,
                                                .epistemic_delta = 1,
                                                .total = 1,
                                                .total_delta = 2},
                                .td_error = 1,
                                .oracle_distance = 1};
    EXPECT_EQ(info.zero_for_one_member, ComputePriority(info.rule, one, {}).value == 0);
    EXPECT_NE(PriorityDocumentation().find("| `" + std::string(info.name) + "` | "),
              std::string::npos);
  }
}

Priority HalfTdError(const PriorityInputs& inputs, const PriorityLimits&) {
  return {.value = inputs.td_error / 2, .floored = true};
}

TEST(PriorityRuleTest, ARegisteredRuleIsComputedWithinTheLimits) {
  const PriorityRule rule = RegisterPriorityRule({.name = std::string("half_td"),
                                                  .formula = "|delta| / 2",
                                                  .needs = {.td_error = true},
                                                  .compute = &HalfTdError});
  EXPECT_FALSE(IsBuiltIn(rule));
  EXPECT_EQ(PriorityRuleName(rule), "half_td");
  EXPECT_EQ(PriorityRuleFromName("half_td"), rule);
  EXPECT_EQ(InfoOf(rule).rule, rule);
  EXPECT_EQ(AllPriorityRules().back(), rule);
  EXPECT_NE(PriorityDocumentation().find("| `half_td` | \\|delta\\| / 2 | TD error | yes |"),
            std::string::npos);
  const auto priority = [&](double td_error) {
    return ComputePriority(rule, {.td_error = td_error}, {.cap = 10});
  };
  EXPECT_EQ(priority(3).value, 1.5);
  EXPECT_TRUE(priority(3).floored);
  EXPECT_FALSE(priority(20).capped);
  EXPECT_EQ(priority(22).value, 10);
  EXPECT_TRUE(priority(22).capped);
  for (const double bad : {-1.0, kNan, kInfinity}) EXPECT_TRUE(std::isnan(priority(bad).value));
}

TEST(PriorityRuleTest, RegistrationRefusesWhatCannotWork) {
  const std::size_t rules = AllPriorityRules().size();
  for (const char* name : {"", "td", "Upper", "a b", "a.b"}) {
    EXPECT_THROW(RegisterPriorityRule({.name = name, .compute = &HalfTdError}), Error) << name;
  }
  EXPECT_THROW(RegisterPriorityRule({.name = "without_formula"}), Error);
  EXPECT_EQ(AllPriorityRules().size(), rules);
}

TEST(PriorityTest, HandValues) {
  // E = 3, A = 1 (the floor 1e-10 shows in the tenth digit only), E_delta = 8.
  const PriorityInputs inputs = {.uncertainty = {.mean = -5,
                                                 .epistemic = 3,
                                                 .aleatoric = 1,
                                                 .target_distance_sq = 5,
                                                 .epistemic_delta = 8,
                                                 .total = 4,
                                                 .total_delta = 9},
                                 .td_error = 2.5,
                                 .visits = 3,
                                 .oracle_distance = 1.5};
  const auto value = [&](PriorityRule rule) {
    return ComputePriority(rule, inputs, {.aleatoric_floor = 1e-10, .cap = 100}).value;
  };
  EXPECT_EQ(value(PriorityRule::kUniform), 1);
  EXPECT_EQ(value(PriorityRule::kTd), 2.5);
  EXPECT_DOUBLE_EQ(value(PriorityRule::kCounts), 0.5);  // 1 / sqrt(1 + 3)
  EXPECT_EQ(value(PriorityRule::kOracle), 1.5);
  EXPECT_EQ(value(PriorityRule::kTotal), 4);
  EXPECT_EQ(value(PriorityRule::kTotalDelta), 9);
  EXPECT_EQ(value(PriorityRule::kEpistemic), 3);
  EXPECT_EQ(value(PriorityRule::kEpistemicDelta), 8);
  EXPECT_NEAR(value(PriorityRule::kInfoGain), 0.6931471805599453, 1e-9);       // ln(4) / 2
  EXPECT_NEAR(value(PriorityRule::kInfoGainDelta), 1.0986122886681098, 1e-9);  // ln(9) / 2
  EXPECT_NEAR(value(PriorityRule::kRatioEa), 3, 1e-8);
  EXPECT_NEAR(value(PriorityRule::kRatioEaDelta), 8, 1e-8);
  EXPECT_NEAR(value(PriorityRule::kRatioEu), 0.75, 1e-9);            // 3 / 4
  EXPECT_NEAR(value(PriorityRule::kRatioEuDelta), 8.0 / 9, 1e-9);    // 8 / 9
  EXPECT_NEAR(value(PriorityRule::kRatioE2u), 2.25, 1e-9);           // 9 / 4
  EXPECT_NEAR(value(PriorityRule::kRatioE2uDelta), 64.0 / 9, 1e-8);  // 64 / 9
  EXPECT_NEAR(value(PriorityRule::kRatioE3u), 6.75, 1e-8);           // 27 / 4
  EXPECT_NEAR(value(PriorityRule::kRatioE3uDelta), 512.0 / 9, 1e-7);
}

TEST(PriorityTest, OnlyTheNamedFieldsAreRead) {
  for (const PriorityRule rule : BuiltInRules()) {
    SCOPED_TRACE(PriorityRuleName(rule));
    EXPECT_TRUE(std::isfinite(Value(rule, 2, 3)));
    if (rule != PriorityRule::kUniform) {
      EXPECT_TRUE(std::isnan(ComputePriority(rule, AllNan(), {}).value));
      EXPECT_NE(Value(rule, 2, 3), Value(rule, 4, 3));
    }
    if (DividesByAleatoric(rule)) {
      EXPECT_NE(Value(rule, 2, 3), Value(rule, 2, 4));
      EXPECT_TRUE(std::isnan(Value(rule, 2, kNan)));
    }
  }
}

TEST(PriorityTest, MoreAleatoricNeverRaisesAndMoreEpistemicNeverLowers) {
  RandomStream random(1, "priority");
  const PriorityLimits limits = {.aleatoric_floor = 1e-10, .cap = 1e6};
  for (const PriorityRule rule : BuiltInRules()) {
    if (!DividesByAleatoric(rule)) continue;
    for (int i = 0; i < 2000; ++i) {
      const double e = std::exp2(random.Uniform() * 80 - 60);
      const double a = std::exp2(random.Uniform() * 80 - 60);
      const double more = 1 + random.Uniform();
      const double value = Value(rule, e, a, limits);
      // Rounding can swap two results that are nearly equal.
      EXPECT_LE(Value(rule, e, a * more, limits), value * (1 + 1e-15));
      EXPECT_GE(Value(rule, e * more, a, limits), value * (1 - 1e-15));
    }
  }
}

TEST(PriorityTest, NothingToLearnGivesZero) {
  for (const PriorityRule rule : BuiltInRules()) {
    if (UncertaintyFields(rule).empty()) continue;
    for (const double aleatoric : {0.0, 1e-300, 1.0, 1e300}) {
      EXPECT_EQ(Value(rule, 0, aleatoric), 0) << PriorityRuleName(rule);
      EXPECT_FALSE(std::signbit(Value(rule, -0.0, aleatoric))) << PriorityRuleName(rule);
    }
  }
}

TEST(PriorityTest, FloorKeepsPrioritiesFiniteAndIsReported) {
  // 1/2 ln(1 + 1 / 1e-10) = 11.512925465; with a floor of 1e-4 1/2 ln(10001) = 4.605220184.
  const PriorityInputs certain = InputsFor(PriorityRule::kInfoGainDelta, 1, 0);
  const Priority first = ComputePriority(PriorityRule::kInfoGainDelta, certain, {});
  EXPECT_NEAR(first.value, 11.512925465, 1e-8);
  EXPECT_TRUE(first.floored);
  EXPECT_FALSE(first.capped);
  EXPECT_NEAR(Value(PriorityRule::kInfoGainDelta, 1, 0, {.aleatoric_floor = 1e-4}), 4.605220184,
              1e-8);
  for (const PriorityRule rule : BuiltInRules()) {
    SCOPED_TRACE(PriorityRuleName(rule));
    const PriorityLimits limits = {.aleatoric_floor = 0.5, .cap = 1e9};
    const auto floored = [&](double a) {
      return ComputePriority(rule, InputsFor(rule, 1, a), limits).floored;
    };
    EXPECT_EQ(floored(0.5), DividesByAleatoric(rule));
    EXPECT_EQ(floored(0), DividesByAleatoric(rule));
    EXPECT_FALSE(floored(0.5000001));
    if (DividesByAleatoric(rule)) {
      EXPECT_LT(Value(rule, 1, 0, limits), Value(rule, 1, 0, {.cap = 1e9}));
    }
  }
}

TEST(PriorityTest, CapLimitsAndIsReported) {
  for (const PriorityRule rule : BuiltInRules()) {
    SCOPED_TRACE(PriorityRuleName(rule));
    const double main = rule == PriorityRule::kCounts ? 0 : 50;
    const PriorityInputs inputs = InputsFor(rule, main, 1);
    const double free = ComputePriority(rule, inputs, {.cap = 1e12}).value;
    const Priority capped = ComputePriority(rule, inputs, {.cap = free / 2});
    EXPECT_EQ(capped.value, free / 2);
    EXPECT_TRUE(capped.capped);
    const Priority at_cap = ComputePriority(rule, inputs, {.cap = free});
    EXPECT_EQ(at_cap.value, free);
    EXPECT_FALSE(at_cap.capped);
  }
}

bool Acceptable(double x) { return std::isfinite(x) && x >= 0; }

// The numeric policy for one pair of inputs and every rule.
void CheckPolicy(double main, double aleatoric, const PriorityLimits& limits) {
  for (const PriorityRule rule : BuiltInRules()) {
    const bool valid = (rule == PriorityRule::kUniform || Acceptable(main)) &&
                       (!DividesByAleatoric(rule) || Acceptable(aleatoric));
    const double value = Value(rule, main, aleatoric, limits);
    if (valid ? !(value >= 0 && value <= limits.cap) : !std::isnan(value)) {
      ADD_FAILURE() << PriorityRuleName(rule) << "(" << main << ", " << aleatoric
                    << ") = " << value;
    }
  }
}

TEST(PriorityTest, PolicyHoldsForSpecialValues) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> specials = {0.0,
                                        -0.0,
                                        Limits::denorm_min(),
                                        -Limits::denorm_min(),
                                        Limits::min(),
                                        -Limits::min(),
                                        1e-200,
                                        1e-10,
                                        1.0,
                                        -1.0,
                                        100.0,
                                        1e100,
                                        1e154,
                                        1e200,
                                        1e308,
                                        Limits::max(),
                                        -Limits::max(),
                                        kInfinity,
                                        -kInfinity,
                                        kNan,
                                        -kNan};
  for (const double cap : {1e-300, 1.0, 100.0, Limits::max()}) {
    for (const double floor : {Limits::denorm_min(), 1e-10, 1.0}) {
      for (const double main : specials) {
        for (const double aleatoric : specials) {
          CheckPolicy(main, aleatoric, {.aleatoric_floor = floor, .cap = cap});
        }
      }
    }
  }
}

TEST(PriorityTest, PolicyHoldsForAllKindsOfFloatBitPatterns) {
  // An odd multiplier walks through all 2^32 patterns; the first 2^16 reach every exponent, both
  // signs and NaNs with payloads.
  int exponents_seen[256] = {};
  for (std::uint32_t i = 0; i < (1u << 16); ++i) {
    const std::uint32_t main = i * 2654435761u;
    const std::uint32_t aleatoric = (i + 12345u) * 2246822519u;
    ++exponents_seen[(main >> 23) & 255];
    CheckPolicy(std::bit_cast<float>(main), std::bit_cast<float>(aleatoric), {});
  }
  for (const int seen : exponents_seen) EXPECT_GT(seen, 0);
}

TEST(PriorityTest, PolicyHoldsForDoubleBitPatterns) {
  RandomStream random(2, "priority");
  for (int i = 0; i < 50000; ++i) {
    const auto main = std::bit_cast<double>(random.NextUint64());
    const auto aleatoric = std::bit_cast<double>(random.NextUint64());
    CheckPolicy(main, aleatoric, {});
    CheckPolicy(std::abs(main), std::abs(aleatoric), {});
  }
}

TEST(RatioTest, AnyPowerEqualsTheQuotient) {
  RandomStream random(3, "priority");
  for (const double m : {1.0, 1.5, 2.0, 3.0, 4.0, 7.25}) {
    for (int i = 0; i < 1000; ++i) {
      const double e = std::exp2(random.Uniform() * 40 - 20);
      const double a = std::exp2(random.Uniform() * 40 - 20);
      const double expected = std::pow(e, m) / (e + a + 1e-10);
      EXPECT_NEAR(RatioEpistemicPowerTotal(e, a, m, 1e-10), expected, 1e-14 * expected);
    }
  }
  // 2^3 / (2 + 1 + 1) = 2 and 2^2 / 4 = 1.
  EXPECT_DOUBLE_EQ(RatioEpistemicPowerTotal(2, 1, 3, 1), 2);
  EXPECT_DOUBLE_EQ(RatioEpistemicPowerTotal(2, 1, 2, 1), 1);
  EXPECT_DOUBLE_EQ(RatioEpistemicPowerTotal(2, 1, 1, 1), 0.5);
}

TEST(RatioTest, NothingOverflowsOnTheWay) {
  // e^3 and even e^2 overflow, the quotient does not: 1e200^2 / 1e300 = 1e100.
  EXPECT_NEAR(RatioEpistemicPowerTotal(1e200, 1e300, 2, 1e-10) / 1e100, 1, 1e-12);
  // 8^667 = 2^2001, over a total of 2^1010 (and 8), is 2^991.
  const double total = std::ldexp(1.0, 1010);
  EXPECT_NEAR(RatioEpistemicPowerTotal(8, total, 667, 1e-10) / std::ldexp(1.0, 991), 1, 1e-10);
  // E = A = the largest double: E + A overflows, E / U = 1/2.
  const double largest = std::numeric_limits<double>::max();
  EXPECT_DOUBLE_EQ(RatioEpistemicPowerTotal(largest, largest, 1, 1e-10), 0.5);
  for (const double m : {1.0, 2.0, 3.0, 10.0, 1000.0}) {
    EXPECT_EQ(RatioEpistemicPowerTotal(0, 0, m, 1e-10), 0);
    EXPECT_EQ(RatioEpistemicPowerTotal(0, 1, m, 1e-10), 0);
  }
}

TEST(RatioTest, EpistemicOverAleatoric) {
  EXPECT_DOUBLE_EQ(RatioEpistemicAleatoric(3, 1, 0.5), 2);  // 3 / 1.5
}

TEST(InfoGainTest, IsTheEntropyThatOneSampleTakesAway) {
  RandomStream random(4, "priority");
  for (int i = 0; i < 1000; ++i) {
    const double prior = std::exp2(random.Uniform() * 20 - 10);
    const double sample = std::exp2(random.Uniform() * 20 - 10);
    const double posterior = PosteriorVariance(prior, sample);
    EXPECT_NEAR(InfoGain(prior, sample, 0), GaussianEntropy(prior) - GaussianEntropy(posterior),
                1e-13);
    // The variance it takes away is E^2 / U.
    EXPECT_NEAR(RatioEpistemicPowerTotal(prior, sample, 2, 0), prior - posterior, 1e-13 * prior);
  }
}

TEST(InfoGainTest, SmallGainsKeepTheirDigits) {
  // ln(1 + x) = x - x^2/2 + ...: for x = 1e-18 the sum 1 + x would be 1 and the gain lost.
  EXPECT_DOUBLE_EQ(InfoGain(1e-18, 1, 0), 0.5e-18);
  // The floor is added to A: 1/2 ln(1 + 3 / (0.5 + 0.5)) = ln 2.
  EXPECT_DOUBLE_EQ(InfoGain(3, 0.5, 0.5), 0.6931471805599453);
}

}  // namespace
}  // namespace uper
