#pragma once

// Short training runs with a small game and a small network. The replay memory is on the host or in
// a fake device (LateDeviceReplay).

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "uper/engine/late_device_replay_for_tests.h"
#include "uper/engine/recording_device_replay_for_tests.h"
#include "uper/nn/make_cpu_learner.h"
#include "uper/train/loop/stacked_game_for_tests.h"
#include "uper/train/loop/trainer.h"
#include "uper/train/run/make_engine.h"
#include "uper/train/run/make_learner.h"
#include "uper/train/run/make_store.h"

namespace uper {

inline RunConfig StackConfig(int environments) {
  RunConfig config;
  config.environments = environments;
  config.frames = 800;  // 200 steps
  config.log_every_frames = 120;
  config.checkpoint_every_frames = 200;
  config.evaluate_every_frames = 280;
  config.evaluation_frames = 60;
  config.network.torso = TorsoPreset::kMlp;
  config.network.mlp_units = 8;
  config.network.hidden_units = 8;
  config.network.members = 3;
  config.network.quantiles = 4;
  config.agent.n_steps = 2;
  config.agent.learn_period_frames = 8;
  config.agent.target_period_frames = 100;
  config.replay.capacity_transitions = 60;  // the ring wraps around
  config.replay.minimum_transitions = 20;
  config.replay.batch_size = 4;
  config.replay.importance_exponent_end_transitions = 200;
  config.replay.importance_exponent_start_transitions = 0;
  config.exploration = {.epsilon_from = 1, .epsilon_to = 0.1, .start_frames = 0, .end_frames = 500};
  return config;
}

class SmallRunTest : public FolderTest {
 protected:
  struct Ways {
    int threads = 1;
    bool overlap = false;
    bool automatic = false;  // instead of `overlap`: Overlap::kAuto
    int stack = 3;
    bool gpu = false;  // LateDeviceReplay
    // Called after every step of a training environment, with its index, if there is one.
    std::function<void(std::uint64_t)> on_step = {};
    std::function<void()> on_decision = {}, on_prelaunch = {};  // LateDeviceReplay
    std::function<void(const std::string&)> record = {};        // the calls that reach it
  };

  // Trains until the end, or until `stop_at_step` steps were played; then everything is saved.
  // Returns whether the run is complete.
  bool Train(const std::string& name, RunConfig config, const Ways& ways, int stop_at_step = -1) {
    if (!ways.automatic) config.overlap_updates = ways.overlap ? Overlap::kYes : Overlap::kNo;
    const RunFolder folder(folder_ / name);
    std::filesystem::create_directories(folder.path());
    ThreadPool pool(ways.threads);
    StopFlag stop = stop_at_step == 0;
    std::atomic<int> played = 0;
    TrainerParts parts;
    parts.make_environment = [&](std::uint64_t index) -> std::unique_ptr<Environment> {
      const auto count = [&, index] {
        if (++played == stop_at_step) stop = true;
        if (ways.on_step) ways.on_step(index);
      };
      return std::make_unique<StaticEnvironment>(index, 4, 3, ways.stack,
                                                 index < 100 ? count : std::function<void()>());
    };
    const EnvironmentSpec spec = parts.make_environment(0)->spec();
    parts.learner = MakeCpuLearner(LearnerSpecFrom(config, spec), pool);
    InitializeLearner(config, *parts.learner);
    if (ways.gpu) {
      auto replay =
          std::make_unique<LateDeviceReplay>(*DeviceReplaySpecFrom(config, spec), *parts.learner);
      replay->on_decision = ways.on_decision;
      replay->on_prelaunch = ways.on_prelaunch;
      parts.device_replay = std::move(replay);
      if (ways.record) {
        parts.device_replay =
            std::make_unique<RecordingDeviceReplay>(std::move(parts.device_replay), ways.record);
      }
    }
    AddEngine(config, spec, ways.threads, parts);
    Trainer trainer(
        config, folder.trainer_files(), std::move(parts),
        {.progress = {}, .warn = [](const std::string& message) { ADD_FAILURE() << message; }});
    return trainer.Run(stop);
  }

  std::map<std::string, std::string> Result(const std::string& name) {
    return ResultOf(RunFolder(folder_ / name));
  }
};

}  // namespace uper
