#include "uper/train/run/run_training.h"

#include <gtest/gtest.h>

#include "uper/base/error_for_tests.h"
#include "uper/base/files/files_for_tests.h"
#include "uper/train/config/resolve_config.h"

namespace uper {
namespace {

class RunTrainingTest : public FolderTest {
 protected:
  RunConfig Small(const std::string& frames) {
    return ResolveConfig({.flags = {{"test", "agent.name", "dqn"},
                                    {"test", "environment.name", "bandit/conal"},
                                    {"test", "frames", frames},
                                    {"test", "replay.minimum_transitions", "20"},
                                    {"test", "evaluation_frames", "10"},
                                    {"test", "threads", "1"}}});
  }
  RunResult Run(const std::string& frames, bool stopped = false) {
    const StopFlag stop = stopped;
    return RunTraining(
        Small(frames), RunFolder(folder_ / "run"), {.version = "1.2.3", .command = {"test"}},
        {.progress = {}, .warn = [this](const std::string& text) { warnings_ += text + "\n"; }},
        stop);
  }

  std::string warnings_;
};

TEST_F(RunTrainingTest, StartsContinuesAndFinishesARun) {
  EXPECT_EQ(Run("200", /*stopped=*/true).end, RunEnd::kInterrupted);
  const RunResult finished = Run("200");
  EXPECT_EQ(finished.end, RunEnd::kFinished);
  EXPECT_EQ(finished.summary.frames, 200);
  EXPECT_TRUE(finished.summary.final_eval_return.has_value());
  const RunResult again = Run("200");
  EXPECT_EQ(again.end, RunEnd::kFinishedAlready);
  EXPECT_EQ(again.summary.updates, finished.summary.updates);
  EXPECT_EQ(Run("300").summary.frames, 300) << "more frames continue a finished run";
  EXPECT_NE(warnings_.find("of memory"), std::string::npos);
  EXPECT_EQ(ReadRunRecord(folder_ / "run" / "run.json").version, "1.2.3");
}

TEST_F(RunTrainingTest, WritesNothingIfItCannotWork) {
  RunConfig config = Small("100");
  config.environment.name = "bandit/nobody";
  const StopFlag stop = false;
  const Thrown thrown =
      Catch([&] { RunTraining(config, RunFolder(folder_ / "run"), {}, {}, stop); });
  EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST(DefaultRunFolderTest, NamesEnvironmentAgentAndSeed) {
  RunConfig config;
  config.environment.name = "minatar/breakout";
  config.agent.name = "dqn";
  config.seed = 7;
  EXPECT_EQ(DefaultRunFolder(config), "runs/minatar-breakout-dqn-7");
}

}  // namespace
}  // namespace uper
