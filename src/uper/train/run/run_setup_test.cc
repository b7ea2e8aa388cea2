#include "uper/train/run/run_setup.h"

#include <gtest/gtest.h>

#include <atomic>

#include "uper/envs/registry.h"
#include "uper/train/config/resolve_config.h"

namespace uper {
namespace {

std::atomic<int> constructions = 0;

// A bandit that counts how often it is made.
void RegisterCounted() {
  if (FindEnvironment("test/counted") != nullptr) return;
  const EnvironmentEntry bandit = *FindEnvironment("bandit/conal");
  EnvironmentEntry entry = bandit;
  entry.name = "test/counted";
  entry.make = [bandit](const EnvironmentOptions& options, const EnvironmentStreams& streams) {
    ++constructions;
    return bandit.make(options, streams);
  };
  entry.describe = bandit.describe;
  entry.settings = "frames = 200\n[replay]\nminimum_transitions = 40\n";
  RegisterEnvironment(entry);
}

RunConfig CountedConfig(const std::vector<std::string>& settings) {
  RegisterCounted();
  constructions = 0;
  ConfigInputs inputs{.flags = {{"--env", "environment.name", "test/counted"},
                                {"--agent", "agent.name", "dqn"},
                                {"--device", "device", "cpu"}},
                      .settings = settings};
  RunConfig config = ResolveConfig(inputs);
  FillAutomaticKeys(config, FramesPerStepOf(config));
  return config;
}

TEST(RunSetupTest, TheSettingsOfAnEntryLieBetweenTheAgentsAndTheUsers) {
  const RunConfig config = CountedConfig({"replay.minimum_transitions=50"});
  EXPECT_EQ(config.frames, 200);                           // the entry's
  EXPECT_EQ(config.replay.minimum_transitions, 50);        // the user's
  EXPECT_EQ(config.replay.capacity_transitions, 100'000);  // the agent's
  EXPECT_EQ(config.network.torso, TorsoPreset::kMlp);
}

TEST(RunSetupTest, NothingIsMadeToPlanARun) {
  const RunConfig config = CountedConfig({});
  CheckEnvironmentFor(config);
  EXPECT_GT(PlanRun(config).memory(), 0U);
  ThreadPool pool(1);
  MakeLearnerFor(config, pool);
  MakeTrainerParts(config, pool);
  EXPECT_EQ(constructions, 0);
}

TEST(RunSetupTest, ARunMakesTheEnvironmentsThatItPlays) {
  for (const int environments : {1, 3}) {
    const RunConfig config = CountedConfig({"environments=" + std::to_string(environments),
                                            "evaluate_every_frames=100", "evaluation_episodes=2"});
    const RunFolder folder(testing::TempDir() + "uper_run_setup_" + std::to_string(environments));
    std::filesystem::remove_all(folder.path());
    std::filesystem::create_directories(folder.path());
    ThreadPool pool(1);
    Trainer trainer(config, folder.trainer_files(), MakeTrainerParts(config, pool), {});
    StopFlag stop = false;
    EXPECT_TRUE(trainer.Run(stop));
    const int evaluations = 3;  // at frames 0, 100 and 200, an environment each
    EXPECT_EQ(constructions, environments + evaluations);
    std::filesystem::remove_all(folder.path());
  }
}

}  // namespace
}  // namespace uper
