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
  own_memory_.resize(size() * spec().observation_bytes());
  memory_ = own_memory_;
  q_.resize(actors_.size() * spec().actions);
  greedy_.resize(actors_.size());
  saved_states_.resize(actors_.size());
}

void Actors::UseMemory(std::span<std::byte> observations) {
  const std::size_t begun = Count(&Actors::HasBegun);
  UPER_CHECK((begun == 0 || begun == size()) && CountAhead() == 0, "a round has half begun");
  UPER_CHECK(observations.size() == memory_.size(), "room for one observation an actor");
  memory_ = observations;
}

void Actors::Begin(std::size_t i) {
  Prepare(i);
  queue_.Add(static_cast<int>(i));
}

void Actors::PlayNow(std::size_t i) {
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
  Played& next = progress.last[progress.begun % 2];
  next.observation = memory_.subspan(i * bytes, bytes);
  UPER_CHECK(progress.begun == round_ || next.observation.data() != PlayedBy(i).observation.data(),
             "who is ahead needs other memory");
  ++progress.begun;
}

// By any thread.
void Actors::Play(int i) {
  Actor& actor = actors_[i];
  Progress& progress = progress_[i];
  Played& played = progress.last[(progress.begun - 1) % 2];
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

const Played& Actors::PlayedBy(std::size_t i) {
  UPER_CHECK(HasPlayed(i), "an actor that has not played this round");
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
  for (std::size_t i = 0; i < size(); ++i) UPER_CHECK(HasPlayed(i), "the round is not over");
  ++round_;
}

void Actors::ChooseActions(std::span<const std::size_t> who,
                           const std::function<double(std::size_t)>& epsilon,
                           const std::function<void(std::span<float>)>& values) {
  const std::size_t actions = spec().actions;
  bool any_greedy = false;
  for (const std::size_t i : who) {
    Actor& actor = actors_[i];
    greedy_[i] = 0;
    if (!actor.in_episode) continue;
    const std::optional<int> random = RandomAction(actions, epsilon(i), actor.exploration);
    actor.action = random.value_or(0);
    greedy_[i] = random ? 0 : 1;
    any_greedy = any_greedy || !random;
  }
  if (!any_greedy) return;
  values(q_);
  for (const std::size_t i : who) {
    if (greedy_[i] == 0) continue;
    Actor& actor = actors_[i];
    actor.action = GreedyAction(std::span(q_).subspan(i * actions, actions), actor.exploration);
  }
}

void Actors::Save(CheckpointContent& content) {
  nlohmann::json list = nlohmann::json::array();
  TensorMap& tensors = content.tensors["environment"];
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    const Actor& actor = actors_[i];
    saved_states_[i] = actor.environment->SaveState();
    tensors[StateName(i)] = AsTensor<std::byte>(saved_states_[i]);
    list.push_back({{"in_episode", actor.in_episode},
                    {"action", actor.action},
                    {"episode_return", actor.episode_return},
                    {"episode_frames", actor.episode_frames},
                    {"exploration_position", actor.exploration.position()}});
  }
  content.document["actors"] = std::move(list);
}

void Actors::Restore(const LoadedCheckpoint& checkpoint) {
  const nlohmann::json& list = checkpoint.document.at("actors");
  if (list.size() != actors_.size()) {
    throw Error(ErrorKind::kCorrupt, "the checkpoint is of another number of environments");
  }
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    Actor& actor = actors_[i];
    const nlohmann::json& json = list.at(i);
    actor.environment->RestoreState(
        TensorValues<std::byte>(checkpoint.Tensors("environment"), StateName(i)));
    actor.in_episode = json.at("in_episode");
    actor.action = json.at("action");
    actor.episode_return = json.at("episode_return");
    actor.episode_frames = json.at("episode_frames");
    actor.exploration.set_position(json.at("exploration_position"));
  }
}

}  // namespace uper
