// The result of a run must not depend on interruptions, on overlapping updates, or on the order in
// which several environments play.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "uper/train/loop/small_runs_for_tests.h"

namespace uper {
namespace {

using TrainerResumeTest = SmallRunTest;

TEST_F(TrainerResumeTest, InterruptedAtAnyStepItEndsTheSame) {
  struct Case {
    int stack;
    int environments;
  };
  for (const auto& [stack, environments] : {Case{3, 1}, Case{3, 3}, Case{1, 2}}) {
    const RunConfig config = StackConfig(environments);
    const std::string whole = "whole" + std::to_string(10 * stack + environments);
    ASSERT_TRUE(Train(whole, config, {.stack = stack}));
    const auto expected = Result(whole);
    for (int step = 0; step < 196; step += 19 * kStride) {
      const std::string part = whole + "_" + std::to_string(step);
      const bool overlap = step % 2 == 0;
      EXPECT_FALSE(Train(part, config, {.overlap = overlap, .stack = stack}, step));
      EXPECT_TRUE(Train(part, config, {.overlap = !overlap, .stack = stack}));
      EXPECT_EQ(Result(part), expected) << "interrupted at step " << step;
    }
  }
}

TEST_F(TrainerResumeTest, OverlapAndThreadsChangeNothing) {
  for (const int environments : {1, 4}) {
    const RunConfig config = StackConfig(environments);
    const std::string plain = "plain" + std::to_string(environments);
    ASSERT_TRUE(Train(plain, config, {}));
    const auto expected = Result(plain);
    int number = 0;
    for (const Ways& ways :
         {Ways{.threads = 3}, Ways{.overlap = true}, Ways{.threads = 3, .overlap = true}}) {
      const std::string name = plain + "_" + std::to_string(number++);
      ASSERT_TRUE(Train(name, config, ways));
      EXPECT_EQ(Result(name), expected)
          << "threads " << ways.threads << " overlap " << ways.overlap;
    }
  }
}

// A device that computes exactly what the host computes gives exactly the same run. This holds for
// any interruption, for a move between device and host, and for late reports of updates.
TEST_F(TrainerResumeTest, AMemoryOnTheGpuChangesNothing) {
  RunConfig uniform = StackConfig(2);
  uniform.replay.selector = SelectorKind::kUniform;
  uniform.agent.priority = PriorityRule::kUniform;
  RunConfig buffer_max = StackConfig(3);
  buffer_max.replay.weight_normalization = WeightNormalization::kBufferMax;
  buffer_max.replay.largest_priority_decay = 0.99;
  RunConfig rows = StackConfig(
      12);  // 12 updates per round, with target copies between them: too many for one call
  rows.replay.batch_size = 12;
  rows.agent.learn_period_frames = 4;
  rows.agent.target_period_frames = 0;
  rows.agent.target_period_updates = 5;
  int number = 0;
  for (const RunConfig& config : {StackConfig(1), StackConfig(3), uniform, buffer_max, rows}) {
    for (const int stack : {3, 1}) {
      const std::string name = "run" + std::to_string(number++);
      ASSERT_TRUE(Train(name, config, {.stack = stack}));
      const auto expected = Result(name);
      for (const bool overlap : {false, true}) {
        const Ways on_gpu{.threads = 3, .overlap = overlap, .stack = stack, .gpu = true};
        const std::string other = name + (overlap ? "_overlap" : "_gpu");
        ASSERT_TRUE(Train(other, config, on_gpu));
        EXPECT_EQ(Result(other), expected) << other;
        const std::string moved = other + "_moved";
        EXPECT_FALSE(Train(moved, config, on_gpu, 71));
        EXPECT_FALSE(Train(moved, config, {.stack = stack}, 30));
        EXPECT_FALSE(Train(moved, config, on_gpu, 40));
        EXPECT_TRUE(Train(moved, config, on_gpu));
        EXPECT_EQ(Result(moved), expected) << moved;
      }
    }
  }
}

// One environment does not end its step before another one has played two more: one of this round
// and one of the next. Its first such step may begin too late to see this; then a later one sees
// it.
TEST_F(TrainerResumeTest, OthersGoAheadOfOneThatStillPlays) {
  RunConfig config = StackConfig(4);
  config.evaluate_every_frames = 0;
  config.log_every_frames = config.checkpoint_every_frames = config.frames;
  ASSERT_TRUE(Train("in_step", config, {}));
  std::array<std::atomic<int>, 4> steps{};
  bool was_overtaken = false;
  const auto on_step = [&](std::uint64_t index) {
    if (++steps[index] < 20 || index != 1) return;
    std::array<int, 4> before;
    std::copy(steps.begin(), steps.end(), before.begin());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (!was_overtaken && std::chrono::steady_clock::now() < end) {
      for (std::size_t i = 0; i < 4; ++i) was_overtaken |= steps[i] >= before[i] + 2;
      std::this_thread::yield();
    }
  };
  ASSERT_TRUE(
      Train("ahead", config, {.threads = 4, .overlap = true, .gpu = true, .on_step = on_step}));
  EXPECT_TRUE(was_overtaken);
  EXPECT_EQ(Result("ahead"), Result("in_step"));
}

// One environment ends its step while actions are chosen for the others. The updates that this step
// makes due must not run before the environment's own decision.
TEST_F(TrainerResumeTest, UpdatesWaitForTheLastDecision) {
  RunConfig config = StackConfig(3);
  config.evaluate_every_frames = 0;
  config.log_every_frames = config.checkpoint_every_frames = config.frames;
  config.exploration = {.epsilon_from = 0, .epsilon_to = 0, .start_frames = 0, .end_frames = 1};
  config.optimizer.learning_rate = 1;  // so that one update changes the best action
  ASSERT_TRUE(Train("in_step", config, {}));
  std::atomic<int> decisions = 0;
  const auto on_step = [&](std::uint64_t index) {
    if (index != 0) return;
    const int before = decisions;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (decisions == before && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  };
  const auto on_decision = [&] {
    ++decisions;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  ASSERT_TRUE(Train("ahead", config,
                    {.threads = 3,
                     .overlap = true,
                     .gpu = true,
                     .on_step = on_step,
                     .on_decision = on_decision}));
  EXPECT_GT(decisions, 60);
  EXPECT_EQ(Result("ahead"), Result("in_step"));
}

// By default a run with its replay memory on a GPU overlaps: it prelaunches the next decision. A
// run without overlap does not.
TEST_F(TrainerResumeTest, AGpuOverlapsUnlessToldNotTo) {
  const RunConfig config = StackConfig(1);
  int prelaunched = 0;
  const auto on_prelaunch = [&] { ++prelaunched; };
  ASSERT_TRUE(Train("in_step", config, {.gpu = true, .on_prelaunch = on_prelaunch}));
  EXPECT_EQ(prelaunched, 0);
  ASSERT_TRUE(
      Train("automatic", config, {.automatic = true, .gpu = true, .on_prelaunch = on_prelaunch}));
  EXPECT_GT(prelaunched, 0);
  EXPECT_EQ(Result("automatic"), Result("in_step"));
}

TEST_F(TrainerResumeTest, SeveralEnvironmentsKeepTheRateOfUpdates) {
  RunConfig config = StackConfig(4);
  ASSERT_TRUE(Train("run", config, {}));
  const checkpoint::LoadResult loaded =
      checkpoint::LoadNewestCheckpoint(RunFolder(folder_ / "run").checkpoints());
  const std::int64_t updates = loaded.checkpoint->manifest.info.at("updates");
  // One update in 8 frames once 20 transitions are stored; about 24 steps of 4 frames, with two
  // steps pending in each environment, come before.
  EXPECT_GE(updates, (800 - 4 * 40) / 8);
  EXPECT_LE(updates, (800 - 4 * 20) / 8 + 1);
  EXPECT_TRUE(Train("other", StackConfig(1), {}));
  EXPECT_NE(Result("other"), Result("run"));
}

}  // namespace
}  // namespace uper
