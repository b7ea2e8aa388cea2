#include "uper/cli/sweep/sweep_job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "uper/base/files/temporary_folder.h"
#include "uper/cli/exit_code.h"

namespace uper::cli {
namespace {

int WaitFor(SweepJob& job) {
  while (true) {
    if (const std::optional<int> code = job.ExitCodeIfEnded()) return *code;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

class SweepThreadTest : public testing::Test {
 protected:
  SweepThreadTest()
      : folder_(temporary_.path()),
        plan_(ParseSweepPlan("agents = [\"dqn\"]\nenvironments = [\"minatar/breakout\"]\n"
                             "seeds = [1, 2]\n[fixed]\nthreads = 1\ndevice = \"cpu\"\n",
                             "plan.toml")) {
    std::filesystem::create_directories(folder_.logs());
  }

  std::unique_ptr<SweepJob> Start(std::size_t run, const TrainHere& train) {
    return StartThreadJob(folder_, plan_.runs[run], {}, train);
  }
  std::string LogOf(std::size_t run) {
    std::ifstream file(folder_.log(plan_.runs[run]));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  TemporaryFolder temporary_;
  SweepFolder folder_;
  SweepPlan plan_;
};

// Runs until it is stopped, like training.
int UntilStopped(const SweepFolder&, const SweepRun&, std::FILE*, const StopFlag& stop) {
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return kExitInterruptedSaved;
}

TEST_F(SweepThreadTest, RunsSideBySideAndSaysWhatItDid) {
  const auto train = [](const SweepFolder&, const SweepRun& run, std::FILE* log, const StopFlag&) {
    std::fprintf(log, "seed %d\n", static_cast<int>(run.config.seed));
    return kExitDone;
  };
  const auto first = Start(0, train);
  const auto second = Start(1, train);
  EXPECT_EQ(WaitFor(*first), kExitDone);
  EXPECT_EQ(WaitFor(*second), kExitDone);
  EXPECT_EQ(LogOf(0), "seed 1\n");
  EXPECT_EQ(LogOf(1), "seed 2\n");
}

TEST_F(SweepThreadTest, OneIsStoppedAndTheOtherGoesOn) {
  const auto first = Start(0, UntilStopped);
  const auto second = Start(1, UntilStopped);
  first->Stop();
  EXPECT_EQ(WaitFor(*first), kExitInterruptedSaved);
  EXPECT_EQ(second->ExitCodeIfEnded(), std::nullopt);
  second->Stop();
  EXPECT_EQ(WaitFor(*second), kExitInterruptedSaved);
}

TEST_F(SweepThreadTest, AFailureIsItsOwnAndToldInTheLog) {
  const auto failing = [](const SweepFolder&, const SweepRun&, std::FILE*, const StopFlag&) -> int {
    throw Error(ErrorKind::kNumeric, "the loss is not finite");
  };
  const auto first = Start(0, failing);
  const auto second = Start(1, UntilStopped);
  EXPECT_EQ(WaitFor(*first), kExitNumeric);
  EXPECT_EQ(LogOf(0), "uper: the loss is not finite\n");
  EXPECT_EQ(second->ExitCodeIfEnded(), std::nullopt);
  second->Stop();
  WaitFor(*second);
}

}  // namespace
}  // namespace uper::cli
