#include "uper/train/loop/round_loop.h"

#include <algorithm>

#include "uper/base/threads/spin_wait.h"

namespace uper {

RoundLoop::RoundLoop(const RunConfig& config, Actors& actors, TransitionStore& store,
                     Engine& engine, Calendar& calendar, TrainingRecord& record)
    : config_(config),
      actors_(actors),
      store_(store),
      engine_(engine),
      calendar_(calendar),
      record_(record),
      epsilon_{.from = config.exploration.epsilon_from,
               .to = config.exploration.epsilon_to,
               .start = static_cast<double>(config.exploration.start_frames),
               .end = static_cast<double>(config.exploration.end_frames)},
      importance_exponent_{
          .from = config.replay.importance_exponent_from,
          .to = config.replay.importance_exponent_to,
          .start = static_cast<double>(config.replay.importance_exponent_start_transitions),
          .end = static_cast<double>(config.replay.importance_exponent_end_transitions)},
      lookahead_(engine.lookahead()),
      may_reserve_(lookahead_ == Lookahead::kActors && actors.GainFromGoingAhead()) {
  deciding_.reserve(actors.size());
  views_.reserve(actors.size());
}

void RoundLoop::PlayRound(const StopFlag& stop, bool must_end) {
  must_end_ = must_end;
  BeginRound();
  RunDueUpdates();
  AwaitSteps(stop);
  DecideForTheRest();
  actors_.NextRound();
  if (!MayDeferUpdates()) RunDueUpdates();
}

void RoundLoop::BeginRound() {
  const PhaseClock::Scope phase(record_.clock, &TimeBreakdown::environment);
  round_frames_ = frames_;
  round_frame_id_ = store_.Frames().next_id;
  stored_ = 0;
  if (!next_reserved_ && may_reserve_) {
    actors_.SetObservationBuffer(engine_.ReserveFrames(round_frame_id_, actors_.size()));
  }
  next_reserved_ = false;
  actors_.StartRest(/*caller_is_idle=*/calendar_.commands().empty());
}

// Stores each step of the round when it is done, and starts the next round of actors that may go
// ahead.
void RoundLoop::AwaitSteps(const StopFlag& stop) {
  const PhaseClock::Scope phase(record_.clock, &TimeBreakdown::environment);
  for (int spins = 0; stored_ < actors_.size(); ++spins) {
    const bool may_go_ahead = MayGoAhead(stop);
    // While this thread plays, it cannot decide for the actors that wait.
    const bool plays_here = !may_go_ahead || (!actors_.AnyIsDone() && actors_.HasBacklog());
    if ((may_go_ahead && SendAhead()) || StoreNext() || (plays_here && actors_.PlayOneHere())) {
      spins = 0;
    } else {
      SpinOrYield(spins);
    }
  }
}

// Whether actors may begin the next round before this one has ended: nothing may be due at its end,
// whatever its number of frames.
bool RoundLoop::MayGoAhead(const StopFlag& stop) const {
  const std::int64_t most = round_frames_ + static_cast<std::int64_t>(actors_.size()) *
                                                actors_.spec().max_frames_per_step;
  return may_reserve_ && !stop && !must_end_ && !calendar_.DueAt(most).any() &&
         most < config_.frames;
}

// Lets the actors that are done begin the next round. Returns whether any did.
bool RoundLoop::SendAhead() {
  deciding_.clear();
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_.IsDone(i) && !actors_.IsAhead(i)) deciding_.push_back(i);
  }
  // Decisions wait for pending updates; meanwhile more actors finish their steps.
  if (deciding_.empty() || engine_.HasPendingUpdates()) return false;
  Decide();
  for (const std::size_t i : deciding_) actors_.Start(i);
  return true;
}

// Stores the next step in the order of the actors, if it is done. Returns whether it did.
bool RoundLoop::StoreNext() {
  if (stored_ == actors_.size() || !actors_.IsDone(stored_)) return false;
  const ActorStep& step = actors_.StepOf(stored_);
  step.was_reset ? StoreStart(stored_, step) : StoreStep(stored_, step);
  ++stored_;
  return true;
}

void RoundLoop::StoreStart(std::size_t actor, const ActorStep& step) {
  store_.Start(actor, step.observation);
  actors_[actor].episode_return = 0;
  actors_[actor].episode_frames = 0;
}

void RoundLoop::StoreStep(std::size_t index, const ActorStep& played) {
  const TimeStep& step = played.step;
  const double clip = config_.agent.reward_clip;
  store_.Add(index,
             {.action = played.action,
              .outcome = {.reward = clip > 0 ? std::clamp(step.reward, -clip, clip) : step.reward,
                          .discount = step.discount * config_.agent.discount,
                          .terminated = step.terminated,
                          .truncated = step.truncated,
                          .noisy = step.noisy}},
             played.observation);
  calendar_.AddStep(frames_, frames_ + step.frames,
                    static_cast<std::int64_t>(store_.buffer().size()));
  frames_ += step.frames;
  Actor& actor = actors_[index];
  actor.episode_return += step.reward;
  actor.episode_frames += step.frames;
  if (!step.last()) return;
  ++episodes_;
  record_.window.train_return.Add(actor.episode_return);
  record_.window.train_episode_frames.Add(static_cast<double>(actor.episode_frames));
}

void RoundLoop::DecideForTheRest() {
  deciding_.clear();
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (!actors_.IsAhead(i)) deciding_.push_back(i);
  }
  Decide();
}

// Chooses the next actions of deciding_.
void RoundLoop::Decide() {
  const PhaseClock::Scope phase(record_.clock, &TimeBreakdown::acting);
  if (CollectViews()) {
    engine_.BeginDecisions(views_);
    if (lookahead_ == Lookahead::kActors) WorkBesideDecisions();
    actors_.SetGreedyActions(views_, engine_.AwaitActionValues());
  }
  ReserveNextRound();
}

// Draws which actors of deciding_ explore, and their random actions. Collects the views of all of
// them. Returns whether any actor needs values.
bool RoundLoop::CollectViews() {
  views_.clear();
  bool any_greedy = false;
  for (const std::size_t i : deciding_) {
    if (!actors_[i].in_episode) continue;
    any_greedy |= !actors_.DrawExploration(i, EpsilonOf(i));
    ActorView view{.actor = i};
    if (i >= stored_) {
      view.next =
          NextFrame{.id = round_frame_id_ + i, .starts_episode = actors_.StepOf(i).was_reset};
    }
    views_.push_back(view);
  }
  return any_greedy;
}

// Runs while the device computes values. Stores the steps that are done and reserves memory for the
// next round. Behind the last decisions of the round, queues the updates that became due.
void RoundLoop::WorkBesideDecisions() {
  while (StoreNext()) {
  }
  const bool last = deciding_.size() + actors_.CountAhead() == actors_.size();
  if (last && stored_ == actors_.size() && MayDeferUpdates()) RunDueUpdates();
  ReserveNextRound();
}

void RoundLoop::ReserveNextRound() {
  if (next_reserved_ || !may_reserve_) return;
  next_reserved_ = true;
  actors_.SetObservationBuffer(
      engine_.ReserveFrames(round_frame_id_ + actors_.size(), actors_.size()));
}

// Epsilon at the end of this round, as if every actor had played as many frames as this one. The
// true number is not known, because an actor may decide before the others are done.
double RoundLoop::EpsilonOf(std::size_t actor) {
  const ActorStep& step = actors_.StepOf(actor);
  const std::int64_t frames = step.was_reset ? 0 : step.step.frames;
  return epsilon_.At(
      static_cast<double>(round_frames_ + static_cast<std::int64_t>(actors_.size()) * frames));
}

void RoundLoop::RunDueUpdates() {
  const PhaseClock::Scope phase(record_.clock, &TimeBreakdown::learning);
  const auto commands = calendar_.commands();
  for (auto command = commands.begin(); command != commands.end();) {
    if (*command == Calendar::Command::kCopyTarget) {
      engine_.CopyTarget();
      ++command;
      continue;
    }
    const auto end = std::find(command, commands.end(), Calendar::Command::kCopyTarget);
    engine_.Learn(static_cast<int>(end - command), ImportanceExponent());
    command = end;
  }
  calendar_.ClearCommands();
  if (lookahead_ == Lookahead::kNone) engine_.AwaitUpdates();
}

// Whether the updates that are due may wait for the next round. They may not if their result is
// needed before that.
bool RoundLoop::MayDeferUpdates() const {
  return lookahead_ != Lookahead::kNone && frames_ < config_.frames && !must_end_ &&
         !calendar_.DueAt(frames_).any();
}

double RoundLoop::ImportanceExponent() const {
  return importance_exponent_.At(static_cast<double>(store_.buffer().next_id()));
}

void RoundLoop::Restore(std::int64_t frames, std::int64_t episodes) {
  frames_ = frames;
  episodes_ = episodes;
}

}  // namespace uper
