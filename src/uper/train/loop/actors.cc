#include "uper/train/loop/actors.h"

#include <algorithm>

#include "uper/base/check.h"
#include "uper/base/threads/spin_wait.h"
#include "uper/base/threads/thread_pool.h"
#include "uper/train/loop/policy.h"

namespace uper {
namespace {

std::string StateName(std::size_t actor) { return "state/" + std::to_string(actor); }

int SpinsOf(const ActorsOptions& options) {
  if (options.free_cores) return kSpinsOnFreeCores;
  return options.environments > 1 && options.workers > 1 ? kSpinsBetweenRounds : 0;
}

}  // namespace

Actors::Actors(const ActorsOptions& options, const EnvironmentMaker& make)
    : progress_(options.environments),
      queue_({.workers = std::min(options.workers, options.environments),
              .capacity = options.environments,
              .idle_spins = SpinsOf(options)},
             [this](int i) { Play(i); }) {
  for (int i = 0; i < options.environments; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    actors_.push_back({.environment = make(index),
                       .exploration = RandomStream(options.seed, "exploration", index)});
  }
  own_buffer_.resize(size() * spec().observation_bytes());
  buffer_ = own_buffer_;
  explores_.resize(actors_.size());
  saved_states_.resize(actors_.size());
}

void Actors::SetObservationBuffer(std::span<std::byte> observations) {
  const std::size_t begun = Count(&Actors::IsStarted);
  UPER_CHECK((begun == 0 || begun == size()) && CountAhead() == 0, "a round has half begun");
  UPER_CHECK(observations.size() == buffer_.size(), "room for one observation per actor");
  buffer_ = observations;
}

void Actors::Start(std::size_t i) {
  Prepare(i);
  queue_.Add(static_cast<int>(i));
}

void Actors::StartRest(bool caller_is_idle) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (IsStarted(i)) continue;
    size() == 1 && caller_is_idle ? PlayHere(i) : Start(i);
  }
}

void Actors::PlayHere(std::size_t i) {
  Prepare(i);
  const ScopedFlushDenormals flush;
  Play(static_cast<int>(i));
}

void Actors::Prepare(std::size_t i) {
  Progress& progress = progress_[i];
  UPER_CHECK(progress.begun <= round_ + 1 &&
                 progress.played.load(std::memory_order_acquire) == progress.begun,
             "an actor plays one step at a time, and at most one round ahead");
  const std::size_t bytes = spec().observation_bytes();
  ActorStep& next = progress.last[progress.begun % 2];
  next.observation = buffer_.subspan(i * bytes, bytes);
  UPER_CHECK(progress.begun == round_ || next.observation.data() != StepOf(i).observation.data(),
             "an actor that is ahead needs another buffer");
  ++progress.begun;
}

// Called by any thread.
void Actors::Play(int i) {
  Actor& actor = actors_[i];
  Progress& progress = progress_[i];
  ActorStep& played = progress.last[(progress.begun - 1) % 2];
  try {
    played.was_reset = !actor.in_episode;
    if (played.was_reset) {
      actor.environment->Reset(played.observation);
    } else {
      played.action = actor.action;
      played.step = actor.environment->Step(actor.action, played.observation);
    }
    actor.in_episode = played.was_reset || !played.step.last();
  } catch (...) {
    progress.failure = std::current_exception();
  }
  progress.played.store(progress.begun, std::memory_order_release);
}

std::size_t Actors::Count(bool (Actors::*is)(std::size_t) const) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); ++i) count += (this->*is)(i) ? 1 : 0;
  return count;
}

int Actors::UnderWay() const {
  return static_cast<int>(std::count_if(
      progress_.begin(), progress_.end(),
      [](const Progress& one) { return one.played.load(std::memory_order_acquire) != one.begun; }));
}

const ActorStep& Actors::StepOf(std::size_t i) {
  UPER_CHECK(IsDone(i), "an actor that has not played this round");
  Progress& progress = progress_[i];
  if (progress.played.load(std::memory_order_acquire) == progress.begun && progress.failure) {
    for (int looks = 0; UnderWay() > 0; ++looks) {
      if (!queue_.RunOne()) SpinOrYield(looks);
    }
    std::rethrow_exception(progress.failure);
  }
  return progress.last[round_ % 2];
}

void Actors::NextRound() {
  for (std::size_t i = 0; i < size(); ++i) UPER_CHECK(IsDone(i), "the round is not over");
  ++round_;
}

bool Actors::DrawExploration(std::size_t i, double epsilon) {
  Actor& actor = actors_[i];
  const std::optional<int> random = RandomAction(spec().actions, epsilon, actor.exploration);
  actor.action = random.value_or(0);
  explores_[i] = random ? 1 : 0;
  return random.has_value();
}

void Actors::SetGreedyActions(std::span<const ActorView> views, std::span<const float> values) {
  const std::size_t actions = spec().actions;
  for (const ActorView& view : views) {
    if (explores_[view.actor] == 0) {
      Actor& actor = actors_[view.actor];
      actor.action = GreedyAction(values.first(actions), actor.exploration);
    }
    values = values.subspan(actions);
  }
}

void Actors::Save(checkpoint::CheckpointContent& content) {
  nlohmann::json list = nlohmann::json::array();
  checkpoint::TensorMap& tensors = content.tensors["environment"];
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    const Actor& actor = actors_[i];
    saved_states_[i] = actor.environment->SaveState();
    tensors[StateName(i)] = checkpoint::AsTensor<std::byte>(saved_states_[i]);
    list.push_back({{"in_episode", actor.in_episode},
                    {"action", actor.action},
                    {"episode_return", actor.episode_return},
                    {"episode_frames", actor.episode_frames},
                    {"exploration_position", actor.exploration.position()}});
  }
  content.document["actors"] = std::move(list);
}

void Actors::Restore(const checkpoint::LoadedCheckpoint& checkpoint) {
  const nlohmann::json& list = checkpoint.document.at("actors");
  if (list.size() != actors_.size()) {
    throw Error(ErrorKind::kCorrupt, "the checkpoint is of another number of environments");
  }
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    Actor& actor = actors_[i];
    const nlohmann::json& json = list.at(i);
    actor.environment->RestoreState(
        checkpoint::TensorValues<std::byte>(checkpoint.Tensors("environment"), StateName(i)));
    actor.in_episode = json.at("in_episode");
    actor.action = json.at("action");
    actor.episode_return = json.at("episode_return");
    actor.episode_frames = json.at("episode_frames");
    actor.exploration.set_position(json.at("exploration_position"));
  }
}

}  // namespace uper
