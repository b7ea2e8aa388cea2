#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/threads/parallel.h"
#include "uper/core/schedule.h"
#include "uper/engine/engine.h"
#include "uper/engine/transition_store.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/actors.h"
#include "uper/train/loop/calendar.h"
#include "uper/train/loop/training_record.h"

namespace uper {

// Plays rounds. In a round every environment plays the action that was chosen for it, or is reset
// if its episode has ended. The loop stores these steps in the order of the actors, chooses the
// next actions and makes the updates that became due. As in DQN Zoo it chooses an action before the
// updates of the same round. So updates and environments do not depend on each other. They may
// overlap as far as the engine allows (Lookahead); results stay the same. Not thread-safe.
class RoundLoop {
 public:
  RoundLoop(const RunConfig& config, Actors& actors, TransitionStore& store, Engine& engine,
            Calendar& calendar, TrainingRecord& record);

  // Plays a round. `must_end`: a checkpoint waits for the end of the round, so no actor may be
  // ahead then.
  void PlayRound(const StopFlag& stop, bool must_end);
  // Whether no actor has begun the next round, so that a run may end here.
  bool MayStop() const { return !actors_.AnyIsStarted(); }
  // Makes the updates that the last round left for the next one.
  void RunDueUpdates();

  std::int64_t frames() const { return frames_; }
  std::int64_t episodes() const { return episodes_; }
  double Epsilon() const { return epsilon_.At(static_cast<double>(frames_)); }
  double ImportanceExponent() const;

  // Continues from a checkpoint.
  void Restore(std::int64_t frames, std::int64_t episodes);

 private:
  void BeginRound();
  void AwaitSteps(const StopFlag& stop);
  bool MayGoAhead(const StopFlag& stop) const;
  bool SendAhead();
  bool StoreNext();
  void StoreStart(std::size_t actor, const ActorStep& step);
  void StoreStep(std::size_t actor, const ActorStep& step);
  void DecideForTheRest();
  void Decide();
  bool CollectViews();
  void WorkBesideDecisions();
  void ReserveNextRound();
  double EpsilonOf(std::size_t actor);
  bool MayDeferUpdates() const;

  const RunConfig& config_;
  Actors& actors_;
  TransitionStore& store_;
  Engine& engine_;
  Calendar& calendar_;
  TrainingRecord& record_;
  const LinearSchedule epsilon_;
  const LinearSchedule importance_exponent_;
  const Lookahead lookahead_;
  const bool may_reserve_;  // actors may go ahead, with frames in the engine's memory

  std::int64_t frames_ = 0;
  std::int64_t episodes_ = 0;

  // The round under way, or the last one.
  bool must_end_ = false;
  std::int64_t round_frames_ = 0;      // frames before it
  std::uint64_t round_frame_id_ = 0;   // of the first frame that it stores, if frames are stacked
  std::size_t stored_ = 0;             // actors whose steps are stored
  bool next_reserved_ = false;         // there is memory for the next round's observations
  std::vector<std::size_t> deciding_;  // actors whose next actions are being chosen
  std::vector<ActorView> views_;       // of those that are in an episode
};

}  // namespace uper
