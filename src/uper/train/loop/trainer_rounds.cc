#include <algorithm>
#include <utility>

#include "uper/base/threads/spin_wait.h"
#include "uper/train/loop/trainer.h"

// How a round is played, stored and chosen for, by environments that need not wait for each other,
// and what updates it makes due.

namespace uper {

// Plays and stores one round; updates that were left for it run beside.
void Trainer::PlayRound(const StopFlag& stop) {
  const auto other = [this] {
    return times_.acting + (learning_->queues() ? 0 : times_.learning + times_.sampling);
  };
  const double other_before = other();
  {
    const Stopwatch watch(times_.environment);
    BeginRound();
    RunUpdates();
    for (int looks = 0; stored_ < actors_.size(); ++looks) {
      const bool may_run_ahead = MayRunAhead(stop);
      // Who plays cannot choose for those who wait.
      const bool helps = !may_run_ahead || (!actors_.AnyHasPlayed() && actors_.NeedsHelp());
      if ((may_run_ahead && RunAhead()) || StoreNext() || (helps && actors_.Help())) {
        looks = 0;
      } else {
        SpinOrYield(looks);
      }
    }
  }
  times_.environment -= other() - other_before;
}

void Trainer::BeginRound() {
  round_frames_ = frames_;
  round_frame_id_ = parts_.experience->Frames().next_id;
  stored_ = 0;
  if (!has_next_memory_) UseMemoryFrom(round_frame_id_);
  has_next_memory_ = false;
  const bool alone = actors_.size() == 1 && updates_due_.empty();  // nothing to do beside it
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_.HasBegun(i)) continue;
    alone ? actors_.PlayNow(i) : actors_.Begin(i);
  }
}

// Memory for the frames from that one on, of a round that nobody has begun.
void Trainer::UseMemoryFrom(std::uint64_t frame) {
  if (runs_ahead_) actors_.UseMemory(learning_->ReserveFrames(frame, actors_.size()));
}

// For the round after this one.
void Trainer::UseNextMemory() {
  if (!std::exchange(has_next_memory_, true)) UseMemoryFrom(round_frame_id_ + actors_.size());
}

// The next step that is to be stored, if it was played.
bool Trainer::StoreNext() {
  if (!actors_.HasPlayed(stored_)) return false;
  const Played& played = actors_.PlayedBy(stored_);
  if (played.was_reset) {
    Actor& actor = actors_[stored_];
    parts_.experience->Start(stored_, played.observation);
    actor.episode_return = 0;
    actor.episode_frames = 0;
  } else {
    StoreStep(stored_, played);
  }
  ++stored_;
  return true;
}

void Trainer::StoreStep(std::size_t index, const Played& played) {
  Actor& actor = actors_[index];
  const TimeStep& step = played.step;
  const double clip = config_.agent.reward_clip;
  parts_.experience->Step(
      index,
      {.action = played.action,
       .outcome = {.reward = clip > 0 ? std::clamp(step.reward, -clip, clip) : step.reward,
                   .discount = step.discount * config_.agent.discount,
                   .terminated = step.terminated,
                   .truncated = step.truncated},
       .noisy = step.noisy},
      played.observation);
  const std::int64_t frames_before = frames_;
  frames_ += step.frames;
  actor.episode_return += step.reward;
  actor.episode_frames += step.frames;
  NoteUpdates(frames_before);
  if (!step.last()) return;
  ++episodes_;
  window_.train_return.Add(actor.episode_return);
  window_.train_episode_frames.Add(static_cast<double>(actor.episode_frames));
}

// Whether actors may begin the next round before this one has ended: then nothing may be due at its
// end, however many frames it has.
bool Trainer::MayRunAhead(const StopFlag& stop) const {
  const std::int64_t most = round_frames_ + static_cast<std::int64_t>(actors_.size()) *
                                                actors_.spec().max_frames_per_step;
  return runs_ahead_ && !stop && !writer_.requested() && !DueAt(most).any() &&
         most < config_.frames;
}

// Lets those that have played begin the next round. Returns whether there were any.
bool Trainer::RunAhead() {
  who_.clear();
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_.HasPlayed(i) && !actors_.IsAhead(i)) who_.push_back(i);
  }
  // What is queued comes first: until it is done there will be more of them.
  if (who_.empty() || learning_->HasPendingUpdates()) return false;
  ChooseActions();
  for (const std::size_t i : who_) actors_.Begin(i);
  return true;
}

void Trainer::EndRound() {
  who_.clear();
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (!actors_.IsAhead(i)) who_.push_back(i);
  }
  ChooseActions();
  actors_.NextRound();
}

// For who_. While a GPU computes the values what was played is stored, what that makes due is
// queued behind the last decisions of the round, and there is memory for the next round.
void Trainer::ChooseActions() {
  const Stopwatch watch(times_.acting);
  const bool last = who_.size() + actors_.CountAhead() == actors_.size();
  const auto meanwhile = [&] {
    while (stored_ < actors_.size() && StoreNext()) {
    }
    if (last && stored_ == actors_.size() && MayOverlap()) RunUpdates();
    UseNextMemory();
  };
  const auto values = [&](std::span<float> q) {
    sights_.clear();
    for (const std::size_t i : who_) {
      if (actors_[i].in_episode) sights_.push_back(SightOf(i));
    }
    learning_->ActionValues(sights_, q, meanwhile);
  };
  actors_.ChooseActions(
      who_, [this](std::size_t i) { return EpsilonOf(i); }, values);
  UseNextMemory();
}

Sight Trainer::SightOf(std::size_t actor) {
  if (actor < stored_) return {.environment = actor};
  return {.environment = actor,
          .next = Experience::NextFrame{.id = round_frame_id_ + actor,
                                        .starts = actors_.PlayedBy(actor).was_reset}};
}

// By the frames at the end of this round, supposing that all play as many as this actor did: it may
// choose before the others have played.
double Trainer::EpsilonOf(std::size_t actor) {
  const Played& played = actors_.PlayedBy(actor);
  const std::int64_t frames = played.was_reset ? 0 : played.step.frames;
  return epsilon_.At(
      static_cast<double>(round_frames_ + static_cast<std::int64_t>(actors_.size()) * frames));
}

// What the step that has just been stored made due.
void Trainer::NoteUpdates(std::int64_t frames_before) {
  const auto stored = static_cast<std::int64_t>(parts_.experience->buffer().size());
  if (stored < std::max<std::int64_t>(1, config_.replay.minimum_transitions)) return;
  if (Crossed(frames_before, frames_, config_.agent.learn_period_frames)) {
    updates_due_.push_back(Update::kLearn);
  }
  const std::int64_t period = config_.agent.target_period_frames;
  if (period > 0 && Crossed(frames_before, frames_, period))
    updates_due_.push_back(Update::kCopyTarget);
}

void Trainer::RunUpdates() {
  for (auto update = updates_due_.begin(); update != updates_due_.end();) {
    if (*update == Update::kCopyTarget) {
      parts_.learner->CopyTarget();
      ++update;
      continue;
    }
    const auto end = std::find(update, updates_due_.end(), Update::kCopyTarget);
    learning_->Learn(static_cast<int>(end - update), ImportanceExponent());
    update = end;
  }
  updates_due_.clear();
  if (!overlaps_) learning_->Finish();
}

// Whether the updates that are due may wait for the next round: nothing may happen before it that
// must see their result.
bool Trainer::MayOverlap() const {
  return overlaps_ && frames_ < config_.frames && !DueNow().any() && !writer_.requested();
}

}  // namespace uper
