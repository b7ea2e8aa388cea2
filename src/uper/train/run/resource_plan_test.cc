#include "uper/train/run/resource_plan.h"

#include <gtest/gtest.h>

#include <fstream>

#include "uper/nn/make_cpu_learner.h"
#include "uper/train/loop/stacked_game_for_tests.h"
#include "uper/train/loop/trainer.h"
#include "uper/train/run/make_engine.h"
#include "uper/train/run/make_learner.h"

namespace uper {
namespace {

constexpr EnvironmentSpec::Element kPixels = EnvironmentSpec::Element::kUint8;

EnvironmentSpec Atari() {
  return {.name = "atari",
          .actions = 18,
          .height = 84,
          .width = 84,
          .element = kPixels,
          .frame_stack = 4};
}

RunConfig AtariConfig() {
  RunConfig config;
  config.network.torso = TorsoPreset::kNature;
  return config;
}

TEST(ResourcePlanTest, AtariByHand) {
  const RunConfig config = AtariConfig();
  const ResourcePlan plan = PlanResources(config, Atari(), LearnerSpecFrom(config, Atari()), 4);
  // Outputs 18 x 10 x 201 = 36,180 with 512 weights and a bias each; the torso has 1,684,128.
  constexpr double kParameters = 36'180.0 * 513 + 1'684'128;
  EXPECT_NEAR(static_cast<double>(plan.replay), 7.24e9, 0.02e9);
  EXPECT_NEAR(static_cast<double>(plan.learner), 20 * kParameters + 25.6e6, 10e6);
  EXPECT_EQ(plan.checkpoint, static_cast<std::uint64_t>(16 * kParameters + 4e6));
  // A million transitions (1,016,654 frames) and two times 250,000; 56 bytes beside the frames.
  EXPECT_NEAR(static_cast<double>(plan.records), 1.5 * 1'016'654 * 7056.0 + 1.5e6 * 56, 1e6);
  EXPECT_EQ(plan.disk(), 3 * (plan.checkpoint + (64 << 20)) + plan.records);
}

// Transitions that leave the replay memory between two saves are not kept on disk. So saves never
// need more disk than three times the replay memory.
TEST(ResourcePlanTest, RareSavesNeedNoMoreDiskThanThreeMemories) {
  RunConfig config = AtariConfig();
  config.replay.capacity_transitions = 100'000;
  config.checkpoint_every_frames = 4 * 100'000;
  const LearnerSpec learner = LearnerSpecFrom(config, Atari());
  const ResourcePlan three = PlanResources(config, Atari(), learner, 4);
  EXPECT_NEAR(static_cast<double>(three.records), 3 * (102'591 * 7056.0 + 1e5 * 56), 1e6);
  config.checkpoint_every_frames = 100'000'000;
  EXPECT_EQ(PlanResources(config, Atari(), learner, 4).disk(), three.disk());
}

TEST(ResourcePlanTest, AShortRunNeedsLess) {
  RunConfig config = AtariConfig();
  config.frames = 40'000;
  const ResourcePlan plan = PlanResources(config, Atari(), LearnerSpecFrom(config, Atari()), 4);
  EXPECT_LT(plan.replay, 90e6);
}

TEST(ResourcePlanTest, RefusesWithTheNumbers) {
  const ResourcePlan plan{.replay = std::uint64_t{7} << 30,
                          .learner = std::uint64_t{1} << 29,
                          .saving = std::uint64_t{1} << 29,
                          .checkpoint = std::uint64_t{1} << 30,
                          .records = std::uint64_t{7} << 30};
  CheckPlan(plan, {});
  CheckPlan(plan, {.memory = std::uint64_t{8} << 30, .disk = std::uint64_t{10} << 30});
  const Thrown memory = Catch([&] {
    CheckPlan(plan, {.memory = (std::uint64_t{8} << 30) - 1, .memory_source = "of the group"});
  });
  EXPECT_EQ(memory.kind, ErrorKind::kResources);
  EXPECT_TRUE(memory.Says("8.00 GiB of memory (replay 7.00 GiB")) << memory.message;
  EXPECT_TRUE(memory.Says("of the group"));
  const Thrown disk =
      Catch([&] { CheckPlan(plan, {.disk = (std::uint64_t{10} << 30) - 1, .folder = "runs/x"}); });
  EXPECT_EQ(disk.kind, ErrorKind::kResources);
  EXPECT_TRUE(disk.Says("10.00 GiB of disk")) << disk.message;
  EXPECT_TRUE(disk.Says("runs/x"));
}

TEST(ResourcePlanTest, TheGpuHoldsFramesOnceAndParametersTwice) {
  const RunConfig config = AtariConfig();
  const LearnerSpec learner = LearnerSpecFrom(config, Atari());
  ResourcePlan plan = PlanResources(config, Atari(), learner, 4);
  EXPECT_EQ(plan.gpu(), 0u);
  PlanGpu(config, Atari(), learner, plan);
  // 1,016,654 frames; 56 bytes and a priority per transition; 8 x 8/7 bytes of tree.
  EXPECT_NEAR(static_cast<double>(plan.gpu_replay), 1'016'654 * 7056.0 + 1e6 * (60 + 64.0 / 7),
              1e6);
  EXPECT_NEAR(static_cast<double>(plan.gpu_learner), 2.0 * static_cast<double>(plan.learner), 7e8);
  CheckPlan(plan, {.gpu = plan.gpu()});
  const Thrown thrown = Catch([&] { CheckPlan(plan, {.gpu = plan.gpu() - 1}); });
  EXPECT_EQ(thrown.kind, ErrorKind::kResources);
  EXPECT_TRUE(thrown.Says("of the GPU's memory (replay 6.75 GiB")) << thrown.message;
}

std::uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

class PlanAgainstARunTest : public FolderTest {};

// A run at Atari's size whose frames cannot be compressed: what it took against what was planned.
TEST_F(PlanAgainstARunTest, MemoryAndDiskAreAsPlanned) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs memory of its own";
#endif
  RunConfig config = AtariConfig();
  config.frames = 4 * 12'000;
  config.evaluate_every_frames = 0;
  config.checkpoint_every_frames = config.frames / 3;
  config.log_every_frames = config.frames;
  config.network.members = 4;
  config.network.quantiles = 51;
  config.replay.capacity_transitions = 11'000;
  config.replay.minimum_transitions = 11'000;
  config.replay.batch_size = 8;
  config.agent.learn_period_frames = 4 * 500;
  config.exploration.start_frames = config.frames;  // all actions random: fast
  config.exploration.end_frames = config.frames;
  const std::uint64_t before = ResidentBytes();
  ThreadPool pool(1);
  TrainerParts parts;
  parts.make_environment = [](std::uint64_t index) -> std::unique_ptr<Environment> {
    return std::make_unique<StaticEnvironment>(index, 84, 84, 4);
  };
  const EnvironmentSpec spec = parts.make_environment(0)->spec();
  const LearnerSpec learner = LearnerSpecFrom(config, spec);
  const ResourcePlan plan = PlanResources(config, spec, learner, 4);
  parts.learner = MakeCpuLearner(learner, pool);
  InitializeLearner(config, *parts.learner);
  AddEngine(config, spec, /*threads=*/1, parts);
  const RunFolder folder(folder_);
  Trainer trainer(config, folder.trainer_files(), std::move(parts),
                  {.progress = {}, .warn = [](const auto&) {}});
  StopFlag stop = false;
  ASSERT_TRUE(trainer.Run(stop));
  const double memory = static_cast<double>(ResidentBytes() - before);
  const double planned = static_cast<double>(plan.memory() - plan.program);
  EXPECT_LE(memory, 1.05 * planned);
  EXPECT_GE(memory, 0.7 * planned);  // saving's part is free again at the end
  std::uint64_t disk = 0;
  std::uint64_t kept = 0;  // two, or one if a save was still being written when the next was due
  for (const auto& file : std::filesystem::directory_iterator(folder.checkpoints())) {
    disk += file.file_size();
    kept += file.path().filename().string().starts_with("manifest") ? 1 : 0;
  }
  ASSERT_GE(kept, 1u);
  EXPECT_LE(disk, plan.disk());
  // Unfinished segments may be small.
  const std::uint64_t least = plan.records + kept * plan.checkpoint;
  EXPECT_GE(static_cast<double>(disk), 0.95 * static_cast<double>(least));
}

}  // namespace
}  // namespace uper
