#include "apps/uper/sweep_job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "apps/uper/exit_code.h"
#include "apps/uper/temporary_folder.h"

namespace uper {
namespace {

std::string PlanText(const std::string& first, const std::string& more) {
  return first +
         "agents = [\"dqn\"]\nenvironments = [\"minatar/breakout\"]\n[fixed]\n"
         "evaluate_every_frames = 0\nreplay.minimum_transitions = 50\nthreads = 1\n"
         "device = \"cpu\"\nnetwork.hidden_units = 8\n" +
         more;
}

int WaitFor(SweepJob& job) {
  while (true) {
    if (const std::optional<int> code = job.ExitCodeIfEnded()) return *code;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string LogOf(const SweepFolder& folder, const SweepRun& run) {
  std::ifstream file(folder.log(run));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class SweepThreadTest : public testing::Test {
 protected:
  SweepThreadTest() : folder_(temporary_.path()) {
    std::filesystem::create_directories(folder_.logs());
  }
  SweepPlan Plan(const std::string& first, const std::string& more) {
    return ParseSweepPlan(PlanText(first, more), "plan.toml");
  }

  TemporaryFolder temporary_;
  SweepFolder folder_;
};

TEST_F(SweepThreadTest, RunsSideBySideEndByThemselves) {
  const SweepPlan plan = Plan("seeds = [1, 2]\n", "frames = 120\n");
  ASSERT_EQ(plan.runs.size(), 2u);
  const auto first = StartThreadJob(folder_, plan.runs[0], {});
  const auto second = StartThreadJob(folder_, plan.runs[1], {});
  EXPECT_EQ(WaitFor(*first), kExitDone);
  EXPECT_EQ(WaitFor(*second), kExitDone);
  for (const SweepRun& run : plan.runs) {
    EXPECT_EQ(folder_.run(run).FinishedFrames(), 120);
    EXPECT_NE(LogOf(folder_, run).find("120 frames"), std::string::npos);
  }
}

TEST_F(SweepThreadTest, OneIsStoppedAndTheOtherGoesOn) {
  const SweepPlan plan = Plan("", "[grid]\nframes = [1_000_000, 120]\n");
  const auto endless = StartThreadJob(folder_, plan.runs[0], {});
  const auto other = StartThreadJob(folder_, plan.runs[1], {});
  EXPECT_EQ(WaitFor(*other), kExitDone);
  EXPECT_EQ(endless->ExitCodeIfEnded(), std::nullopt);
  endless->Stop();
  EXPECT_EQ(WaitFor(*endless), kExitInterruptedSaved);
  EXPECT_NE(LogOf(folder_, plan.runs[0]).find("interrupted and saved"), std::string::npos);
}

TEST_F(SweepThreadTest, AFailureIsToldInTheLog) {
  const SweepPlan plan = Plan("", "frames = 120\n");
  std::filesystem::create_directories(folder_.run(plan.runs[0]).path());
  std::ofstream(folder_.run(plan.runs[0]).config()) << "no toml";
  const auto job = StartThreadJob(folder_, plan.runs[0], {});
  EXPECT_NE(WaitFor(*job), kExitDone);
  EXPECT_EQ(LogOf(folder_, plan.runs[0]).rfind("uper: ", 0), 0u) << LogOf(folder_, plan.runs[0]);
}

}  // namespace
}  // namespace uper
