#include "experiments/framework/timed_training.h"

#include <gtest/gtest.h>

#include "uper/base/error_for_tests.h"

namespace uper::experiments {
namespace {

const TimedTraining kTraining = {.agent = "dqn",
                                 .environment = "minatar/breakout",
                                 .device = "cpu",
                                 .iterations = 3,
                                 .iteration_frames = 50,
                                 .settings = {{"replay.capacity_transitions", "1000"},
                                              {"replay.minimum_transitions", "20"},
                                              {"evaluate_every_frames", "0"}}};

TEST(TimedTraining, GivesThePositiveTimeOfEachIteration) {
  const StopFlag stop = false;
  const std::vector<IterationTime> times = TimeTraining(kTraining, 1, stop, nullptr);
  ASSERT_EQ(times.size(), 3u);
  for (const IterationTime& time : times) {
    EXPECT_GT(time.environment_seconds, 0);
    EXPECT_GT(time.seconds, time.environment_seconds);
  }
}

TEST(TimedTraining, StopsWhenItIsTold) {
  const StopFlag stop = true;
  EXPECT_EQ(Catch([&] { TimeTraining(kTraining, 1, stop, nullptr); }).kind,
            ErrorKind::kInterrupted);
}

TEST(TimedTraining, TheCpuCanAlwaysTrain) { EXPECT_EQ(UsableDevices().front(), "cpu"); }

}  // namespace
}  // namespace uper::experiments
