#include "uper/replay/n_step_accumulator.h"

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

using Accumulator = NStepAccumulator<int>;
using Emitted = std::vector<Transition<int>>;

Emitted Step(Accumulator& accumulator, int action, const StepOutcome& outcome, int s_t) {
  const auto emitted = accumulator.Step(action, outcome, s_t);
  accumulator.CheckValid();
  return {emitted.begin(), emitted.end()};
}

TEST(NStepAccumulator, EmitsOnceNStepsExist) {
  Accumulator accumulator(3);
  accumulator.Start(10);
  EXPECT_EQ(Step(accumulator, 1, {.reward = 1, .discount = 0.5}, 11), Emitted{});
  EXPECT_EQ(Step(accumulator, 2, {.reward = 2, .discount = 0.5}, 12), Emitted{});
  EXPECT_EQ(Step(accumulator, 3, {.reward = 4, .discount = 0.5}, 13),
            (Emitted{{10, 1, 1 + 0.5 * 2 + 0.25 * 4, 0.125, 13}}));
  EXPECT_EQ(Step(accumulator, 4, {.reward = 8, .discount = 0.5}, 14),
            (Emitted{{11, 2, 2 + 0.5 * 4 + 0.25 * 8, 0.125, 14}}));
}

TEST(NStepAccumulator, TerminationEmitsAllTailsWithoutBootstrap) {
  Accumulator accumulator(3);
  accumulator.Start(10);
  Step(accumulator, 1, {.reward = 1, .discount = 0.5}, 11);
  EXPECT_EQ(Step(accumulator, 2, {.reward = 2, .discount = 0.5, .terminated = true}, 12),
            (Emitted{{10, 1, 2, 0, 12}, {11, 2, 2, 0, 12}}));
  EXPECT_TRUE(accumulator.GetState().actions.empty());
}

TEST(NStepAccumulator, TruncationEmitsAllTailsBootstrappingFromTheFinalObservation) {
  Accumulator accumulator(3);
  accumulator.Start(10);
  for (int i = 1; i <= 2; ++i) Step(accumulator, i, {.reward = 0, .discount = 0.5}, 10 + i);
  Step(accumulator, 3, {.reward = 0, .discount = 0.5}, 13);
  EXPECT_EQ(Step(accumulator, 4, {.reward = 1, .discount = 0.5, .truncated = true}, 99),
            (Emitted{{11, 2, 0.25, 0.125, 99}, {12, 3, 0.5, 0.25, 99}, {13, 4, 1, 0.5, 99}}));
}

TEST(NStepAccumulator, ALifeLossInsideTheWindowCutsButTheEpisodeGoesOn) {
  Accumulator accumulator(3);
  accumulator.Start(0);
  Step(accumulator, 1, {.reward = 1, .discount = 0.5}, 1);
  Step(accumulator, 2, {.reward = 1, .discount = 0}, 2);
  EXPECT_EQ(Step(accumulator, 3, {.reward = 100, .discount = 0.5}, 3),
            (Emitted{{0, 1, 1.5, 0, 3}}));
  Step(accumulator, 4, {.reward = 0, .discount = 0.5}, 4);
  EXPECT_EQ(Step(accumulator, 5, {.reward = 0, .discount = 0.5}, 5),
            (Emitted{{2, 3, 100, 0.125, 5}}));
}

TEST(NStepAccumulator, OneStepIsTheStepItself) {
  Accumulator accumulator(1);
  accumulator.Start(5);
  EXPECT_EQ(Step(accumulator, 3, {.reward = 2, .discount = 0.9}, 6), (Emitted{{5, 3, 2, 0.9, 6}}));
  EXPECT_EQ(Step(accumulator, 4, {.reward = 2, .discount = 0.9, .terminated = true}, 7),
            (Emitted{{6, 4, 2, 0, 7}}));
}

TEST(NStepAccumulator, StateRoundTripInMidEpisode) {
  Accumulator accumulator(4);
  accumulator.Start(0);
  for (int i = 1; i <= 6; ++i) Step(accumulator, i, {.reward = 1.0 * i, .discount = 0.9}, i);
  Accumulator restored(4);
  restored.SetState(accumulator.GetState());
  for (int i = 7; i <= 9; ++i) {
    const StepOutcome outcome{.reward = 1.0 * i, .discount = 0.9, .truncated = i == 9};
    EXPECT_EQ(Step(accumulator, i, outcome, i), Step(restored, i, outcome, i));
  }
  Accumulator::State bad = accumulator.GetState();
  bad.actions.push_back(1);
  EXPECT_THROW(restored.SetState(bad), Error);
}

TEST(NStepAccumulator, AStepOutsideAnEpisodeIsRefused) {
  Accumulator accumulator(2);
  EXPECT_THROW(accumulator.Step(0, {}, 1), Error);
  accumulator.Start(0);
  accumulator.Step(0, {.terminated = true}, 1);
  EXPECT_THROW(accumulator.Step(0, {}, 2), Error);
  EXPECT_THROW(Accumulator(0), Error);
}

}  // namespace
}  // namespace uper
