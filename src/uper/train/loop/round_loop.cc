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
      // Without workers those who are ahead would only wait.
      may_reserve_(lookahead_ == Lookahead::kActors &&
                   (actors.size() == 1 || actors.workers() > 0)) {
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
  const bool alone = actors_.size() == 1 && calendar_.commands().empty();  // nothing to do beside
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_.IsStarted(i)) continue;
    alone ? actors_.PlayHere(i) : actors_.Start(i);
  }
}

// Stores every step of the round as it comes, and sends those ahead who may go.
void RoundLoop::AwaitSteps(const StopFlag& stop) {
  const PhaseClock::Scope phase(record_.clock, &TimeBreakdown::environment);
  for (int spins = 0; stored_ < actors_.size(); ++spins) {
    const bool may_go_ahead = MayGoAhead(stop);
    // While this thread plays, it cannot decide for those who wait.
    const bool plays_here = !may_go_ahead || (!actors_.AnyIsDone() && actors_.HasBacklog());
    if ((may_go_ahead && SendAhead()) || StoreNext() || (plays_here && actors_.PlayOneHere())) {
      spins = 0;
    } else {
      SpinOrYield(spins);
    }
  }
}

// Whether actors may begin the next round before this one has ended: nothing may be due at its end,
// however many frames it will have.
bool RoundLoop::MayGoAhead(const StopFlag& stop) const {
  const std::int64_t most = round_frames_ + static_cast<std::int64_t>(actors_.size()) *
                                                actors_.spec().max_frames_per_step;
  return may_reserve_ && !stop && !must_end_ && !calendar_.DueAt(most).any() &&
         most < config_.frames;
}

// Lets those who are done begin the next round. Returns whether there were any.
bool RoundLoop::SendAhead() {
  deciding_.clear();
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_.IsDone(i) && !actors_.IsAhead(i)) deciding_.push_back(i);
  }
  // Updates come first: until they are made there will be more actors to decide for.
  if (deciding_.empty() || engine_.HasPendingUpdates()) return false;
  Decide();
  for (const std::size_t i : deciding_) actors_.Start(i);
  return true;
}

// The next step in the order of the actors, if it is done.
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

// Draws who explores, and the actions of these; collects what everybody sees. Returns whether
// anybody needs values.
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

// While the device computes values: stores what is done, queues the updates that this makes due
// behind the last decisions of the round, and reserves memory for the next one.
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

// By the frames at the end of this round, supposing that all play as many as this actor did: it may
// decide before the others are done.
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

// Whether the updates that are due may wait for the next round: nothing may happen before it that
// must see their result.
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
