#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "uper/base/threads/parallel.h"
#include "uper/checkpoint/checkpoint_writer.h"
#include "uper/core/schedule.h"
#include "uper/engine/experience_learner.h"
#include "uper/engine/transition_store.h"
#include "uper/envs/environment.h"
#include "uper/metrics/metrics_log.h"
#include "uper/metrics/metrics_window.h"
#include "uper/metrics/time_breakdown.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/actors.h"
#include "uper/train/run/run_folder.h"

namespace uper {

// A glance at a run under way.
struct TrainingProgress {
  std::int64_t frames = 0;
  std::int64_t total_frames = 0;
  double frames_per_second = 0;     // of this session
  const MetricsRow* row = nullptr;  // when one was just written
  bool evaluating = false;          // an evaluation begins, which may take minutes
};

// What the trainer tells the outside; it never prints itself.
struct TrainerCallbacks {
  std::function<void(const TrainingProgress&)> progress;
  std::function<void(const std::string&)> warn;
};

// Everything the trainer is made of; concrete environments and learners come from outside.
struct TrainerParts {
  EnvironmentMaker make_environment;
  std::unique_ptr<Learner> learner;  // initialised
  std::unique_ptr<Experience> experience;
  std::unique_ptr<DeviceReplay> gpu_memory;  // beside the learner; without one the host draws
  int environment_threads = 1;               // that play the environments, if there are several
};

// One training run: play the chosen actions, store, choose the next ones, learn, evaluate, log,
// save, in one fixed order, so that configuration and seed decide everything but the columns of
// times. As in DQN Zoo an action is chosen before the update that is due at the same frame; so
// update and emulation do not depend on each other and may overlap: updates that are queued on a
// GPU run meanwhile, others run beside the environments in this thread. Nor need an environment
// wait for others that are still playing: where a GPU values what is not stored yet, it goes one
// round ahead. A run that is interrupted
// and continued from any checkpoint gives the same result as one that was not. Not thread-safe.
class Trainer {
 public:
  // Continues from the newest checkpoint of the folder if there is one; what was skipped on the way
  // is told through `warn`. Throws Error(kCorrupt) if there are checkpoints but none loads.
  Trainer(const RunConfig& config, const RunFolder& folder, TrainerParts parts,
          TrainerCallbacks callbacks);

  // Trains to config.frames. False when `stop` ended it before. Everything is saved then; throws
  // Error(kResources) if that is not possible.
  bool Run(const StopFlag& stop);

  std::int64_t frames() const { return frames_; }
  std::int64_t updates() { return parts_.learner->updates(); }
  std::optional<double> final_eval_return() const { return final_eval_return_; }
  std::optional<double> best_eval_return() const { return best_eval_return_; }
  double wall_seconds() const { return former_wall_seconds_ + SessionSeconds(); }
  const TimeBreakdown& time_shares() const { return times_; }
  const SaveTimes& save_times() const { return writer_.times(); }
  // From the end of the last step until everything was saved.
  double final_save_seconds() const { return final_save_seconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  // What is to be done at this number of frames.
  struct Due {
    bool evaluate = false;
    bool log = false;
    bool save = false;

    bool any() const { return evaluate || log || save; }
  };
  enum class Update { kLearn, kCopyTarget };

  // False if `stop` came in the middle of something that has to be repeated.
  bool TrainUntil(const StopFlag& stop);
  // A round, in trainer_rounds.cc.
  void PlayRound(const StopFlag& stop);
  void BeginRound();
  void UseMemoryFrom(std::uint64_t frame);
  void UseNextMemory();
  bool StoreNext();
  void StoreStep(std::size_t index, const Played& played);
  bool MayRunAhead(const StopFlag& stop) const;
  bool RunAhead();
  void ChooseActions();
  Sight SightOf(std::size_t actor);
  double EpsilonOf(std::size_t actor);
  void EndRound();
  void NoteUpdates(std::int64_t frames_before);
  void RunUpdates();
  bool MayOverlap() const;

  Due DueAt(std::int64_t frames) const;
  Due DueNow() const { return DueAt(frames_); }
  bool FinishFrame(const StopFlag& stop);
  bool EvaluateNow(const StopFlag& stop);
  void Log();
  void AdvanceSaving();
  void FinishSaving();
  void ReportSave(const SaveReport& report);
  CheckpointContent Content();
  void Restore(const LoadedCheckpoint& checkpoint);
  void ReportProgress(const MetricsRow* row, bool evaluating = false);
  double SessionSeconds() const;
  double ImportanceExponent() const;
  static bool Crossed(std::int64_t before, std::int64_t after, std::int64_t period);

  const RunConfig config_;
  const RunFolder folder_;
  TrainerParts parts_;
  TrainerCallbacks callbacks_;
  const LinearSchedule epsilon_;
  const LinearSchedule importance_exponent_;

  // The state of the run, beside learner and experience.
  Actors actors_;
  std::unique_ptr<MetricsLog> log_;
  MetricsWindow window_;
  std::int64_t frames_ = 0;
  std::int64_t finished_frames_ = -1;  // evaluation, log and checkpoint are done up to here
  std::int64_t episodes_ = 0;
  std::int64_t evaluations_ = 0;
  std::vector<Update> updates_due_;  // in their order; none at a checkpoint

  // Of the round under way, or the last one.
  std::int64_t round_frames_ = 0;     // before it
  std::uint64_t round_frame_id_ = 0;  // of the first one that it stores, where frames are stacked
  std::size_t stored_ = 0;            // actors whose steps are stored
  const bool overlaps_;               // updates run while the next one is played
  bool runs_ahead_ = false;           // actors may begin the next one before it has ended
  bool has_next_memory_ = false;      // for what they see in it
  std::vector<std::size_t> who_;      // whose actions are to be chosen
  std::vector<Sight> sights_;         // what they see
  std::optional<double> final_eval_return_;
  std::optional<double> best_eval_return_;
  std::int64_t saved_frames_ = -1;

  // Times; they decide nothing.
  Clock::time_point session_start_;
  std::int64_t session_first_frame_ = 0;
  double former_wall_seconds_ = 0;
  Clock::time_point last_row_time_;
  std::int64_t last_row_frames_ = 0;
  Clock::time_point last_progress_;
  TimeBreakdown times_;
  double final_save_seconds_ = 0;

  std::unique_ptr<ExperienceLearner> learning_;

  CheckpointWriter writer_;  // last: its thread ends before what it reads
};

}  // namespace uper
