// After the first rounds a round must not allocate. The test counts every call of operator new in
// this program.

#include <gtest/gtest.h>

#include "uper/base/allocations_for_tests.h"
#include "uper/train/loop/round_loop.h"
#include "uper/train/loop/small_runs_for_tests.h"

namespace uper {
namespace {

// Plays rounds with the parts of a run, without the trainer's log and checkpoints.
std::size_t AllocationsOfRounds(RunConfig config, int stack) {
  config.evaluate_every_frames = config.log_every_frames = config.checkpoint_every_frames = 0;
  config.frames = 1'000'000;
  ThreadPool pool(1);
  TrainerParts parts;
  parts.make_environment = [stack](std::uint64_t index) -> std::unique_ptr<Environment> {
    return std::make_unique<StaticEnvironment>(index, 4, 3, stack);
  };
  const EnvironmentSpec spec = parts.make_environment(0)->spec();
  parts.learner = MakeCpuLearner(LearnerSpecFrom(config, spec), pool);
  InitializeLearner(config, *parts.learner);
  AddEngine(config, spec, /*threads=*/1, parts);
  Actors actors(parts.actors, parts.make_environment);
  Calendar calendar(config);
  calendar.FinishFrames(0);
  RoundLoop loop(config, actors, *parts.store, *parts.engine, calendar, *parts.record);
  const StopFlag stop = false;
  const auto play = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) loop.PlayRound(stop, /*must_end=*/false);
  };
  play(200);
  const std::size_t updates = parts.learner->updates();
  const std::size_t allocations = AllocationsDuring([&] { play(200); });
  EXPECT_GT(parts.learner->updates(), updates);  // it learned meanwhile
  return allocations;
}

TEST(RoundAllocationTest, TheCounterCounts) {
  EXPECT_GT(AllocationsDuring([] { std::vector<int>(100).front() = 1; }), 0u);
}

TEST(RoundAllocationTest, ARoundAllocatesNothing) {
  for (const int environments : {1, 3}) {
    for (const int stack : {1, 3}) {
      for (const Overlap overlap : {Overlap::kNo, Overlap::kYes}) {
        RunConfig config = StackConfig(environments);
        config.overlap_updates = overlap;
        EXPECT_EQ(AllocationsOfRounds(config, stack), 0u)
            << environments << " environments, stack " << stack;
      }
    }
  }
}

}  // namespace
}  // namespace uper
