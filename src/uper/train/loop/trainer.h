#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "uper/base/threads/parallel.h"
#include "uper/checkpoint/checkpoint_writer.h"
#include "uper/engine/device_replay.h"
#include "uper/engine/engine.h"
#include "uper/engine/transition_store.h"
#include "uper/metrics/metrics_log.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/actors.h"
#include "uper/train/loop/calendar.h"
#include "uper/train/loop/round_loop.h"
#include "uper/train/loop/training_record.h"

namespace uper {

// The progress of a run under way.
struct TrainingProgress {
  std::int64_t frames = 0;
  std::int64_t total_frames = 0;
  double frames_per_second = 0;     // of this session
  const MetricsRow* row = nullptr;  // when one was just written
  bool evaluating = false;          // an evaluation begins, which may take minutes
};

// Callbacks that report on a run; the trainer itself never prints.
struct TrainerCallbacks {
  std::function<void(const TrainingProgress&)> progress;
  std::function<void(const std::string&)> warn;
};

// The files that a trainer writes.
struct TrainerFiles {
  std::filesystem::path metrics;      // CSV
  std::filesystem::path events;       // for TensorBoard
  std::filesystem::path checkpoints;  // a folder
};

// Everything a trainer is made of (run/run_setup.h puts it together). Each part may refer to
// those before it.
struct TrainerParts {
  EnvironmentMaker make_environment;
  ActorsOptions actors;
  std::unique_ptr<TrainingRecord> record;
  std::unique_ptr<Learner> learner;  // initialized
  std::unique_ptr<TransitionStore> store;
  std::unique_ptr<DeviceReplay> device_replay;  // if the engine is a device's
  std::unique_ptr<Engine> engine;
};

// One training run: plays rounds (round_loop.h) and, between them, evaluates, logs and saves what
// is due. Configuration and seed decide everything except for the columns of times. A run that is
// interrupted and continued from any checkpoint gives the same result as one that was not. Not
// thread-safe.
class Trainer {
 public:
  // Continues from the newest checkpoint if there is one; `warn` gets the reasons for
  // skipping others. Throws Error(kCorrupt) if there are checkpoints but none loads.
  Trainer(const RunConfig& config, const TrainerFiles& files, TrainerParts parts,
          TrainerCallbacks callbacks);

  // Trains to config.frames. Returns false if `stop` ended it before. In both cases everything is
  // saved; throws Error(kResources) if that is not possible.
  bool Run(const StopFlag& stop);

  std::int64_t frames() const { return loop_.frames(); }
  std::int64_t updates() { return parts_.learner->updates(); }
  std::optional<double> final_eval_return() const { return final_eval_return_; }
  std::optional<double> best_eval_return() const { return best_eval_return_; }
  double wall_seconds() const { return former_wall_seconds_ + SessionSeconds(); }
  const TimeBreakdown& times() const { return parts_.record->clock.times(); }
  const checkpoint::SaveTimes& save_times() const { return writer_.times(); }
  // From the end of the last step until everything was saved.
  double final_save_seconds() const { return final_save_seconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  void OpenLog(const std::optional<checkpoint::LoadedCheckpoint>& checkpoint);
  // Returns false if `stop` interrupted something that has to be repeated.
  bool TrainUntil(const StopFlag& stop);
  bool FinishFrames(const StopFlag& stop);
  void AwaitUpdates();
  bool Evaluate(const StopFlag& stop);
  void Log();
  void AdvanceSaving();
  void FinishSaving();
  void ReportSave(const checkpoint::SaveReport& report);
  checkpoint::CheckpointContent Content();
  void Restore(const checkpoint::LoadedCheckpoint& checkpoint);
  void ReportProgress(const MetricsRow* row, bool evaluating = false);
  double SessionSeconds() const;
  PhaseClock::Scope In(PhaseClock::Phase phase) { return {parts_.record->clock, phase}; }

  const RunConfig config_;
  const TrainerFiles files_;
  TrainerParts parts_;
  TrainerCallbacks callbacks_;

  // The state of the run, besides learner and store.
  Actors actors_;
  Calendar calendar_;
  RoundLoop loop_;
  std::unique_ptr<MetricsLog> log_;
  std::int64_t evaluations_ = 0;
  std::optional<double> final_eval_return_;
  std::optional<double> best_eval_return_;
  std::int64_t saved_frames_ = -1;

  // Times; results do not depend on them.
  Clock::time_point session_start_;
  std::int64_t session_first_frame_ = 0;
  double former_wall_seconds_ = 0;
  Clock::time_point last_row_time_;
  std::int64_t last_row_frames_ = 0;
  Clock::time_point last_progress_;
  double final_save_seconds_ = 0;

  checkpoint::CheckpointWriter writer_;  // last: its thread ends before what it reads
};

}  // namespace uper
