// Tests that draws follow the reported probabilities, by Pearson's chi-square over 200,000 draws,
// for every selector, exponent, mixing and stratification. To show that the test can fail, it must
// reject the same draws against the probabilities of the neighboring exponent.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "uper/replay/replay_for_tests.h"
#include "uper/replay/selectors/make_selector.h"

namespace uper {
namespace {

constexpr std::size_t kItems = 60;
constexpr std::size_t kBatch = 32;
constexpr std::size_t kBatches = 200'000 / kBatch;
constexpr std::array kExponents = {0.0, 0.5, 0.7, 1.0, 2.0};

struct Setting {
  SelectorKind kind;
  double mix;
  bool stratified;
};

std::unique_ptr<Selector> MakeFilled(const Setting& setting, double exponent) {
  auto selector = MakeSelector(setting.kind, 64,
                               {.priority_exponent = exponent,
                                .uniform_mix = setting.mix,
                                .stratified = setting.stratified});
  RandomStream random(11, "priorities");
  for (std::size_t i = 0; i < kItems + 30; ++i) {  // wraps around the ring
    const double priority = i % 10 == 0 ? 0.0 : 0.2 + 4 * random.Uniform();
    selector->Append(static_cast<float>(priority));
  }
  selector->RemoveOldest(selector->size() - kItems);
  return selector;
}

std::vector<double> Probabilities(const Selector& selector) {
  std::vector<double> probabilities(selector.capacity(), 0.0);
  for (std::size_t i = 0; i < selector.size(); ++i) {
    const std::size_t slot = (selector.first_slot() + i) % selector.capacity();
    probabilities[slot] = selector.Probability(slot);
  }
  return probabilities;
}

std::vector<std::uint64_t> DrawCounts(Selector& selector) {
  RandomStream random(12, "draws");
  std::vector<std::uint64_t> counts(selector.capacity(), 0);
  std::vector<Draw> draws(kBatch);
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    selector.Sample(random, draws);
    for (const Draw& draw : draws) ++counts[draw.slot];
  }
  return counts;
}

void CheckSetting(const Setting& setting) {
  for (std::size_t e = 0; e < kExponents.size(); ++e) {
    SCOPED_TRACE("exponent " + std::to_string(kExponents[e]) + " mix " +
                 std::to_string(setting.mix) + " stratified " + std::to_string(setting.stratified));
    const auto selector = MakeFilled(setting, kExponents[e]);
    const std::vector<double> probabilities = Probabilities(*selector);
    const std::vector<std::uint64_t> counts = DrawCounts(*selector);
    const ChiSquare fit = ComputeChiSquare(counts, probabilities);
    EXPECT_LT(fit.statistic, fit.threshold());
    for (std::size_t slot = 0; slot < counts.size(); ++slot) {
      if (probabilities[slot] == 0) {
        EXPECT_EQ(counts[slot], 0U);
      }
    }
    if (setting.kind == SelectorKind::kUniform) continue;
    const double other = kExponents[e == 0 ? 1 : e - 1];
    const ChiSquare misfit = ComputeChiSquare(counts, Probabilities(*MakeFilled(setting, other)));
    EXPECT_GT(misfit.statistic, misfit.threshold()) << "the test cannot tell " << other;
  }
}

class DrawDistribution : public testing::TestWithParam<SelectorKind> {};

TEST_P(DrawDistribution, Independent) { CheckSetting({GetParam(), 0.0, false}); }
TEST_P(DrawDistribution, IndependentMixed) { CheckSetting({GetParam(), 0.2, false}); }
TEST_P(DrawDistribution, Stratified) { CheckSetting({GetParam(), 0.0, true}); }
TEST_P(DrawDistribution, StratifiedMixed) { CheckSetting({GetParam(), 0.2, true}); }

std::string KindName(const testing::TestParamInfo<SelectorKind>& info) {
  constexpr std::array kNames = {"Proportional", "Rank", "Uniform"};
  return kNames[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(AllSelectors, DrawDistribution,
                         testing::Values(SelectorKind::kProportional, SelectorKind::kRank,
                                         SelectorKind::kUniform),
                         KindName);

}  // namespace
}  // namespace uper
