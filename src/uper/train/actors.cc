#include "uper/train/actors.h"

#include <algorithm>

#include "uper/base/check.h"
#include "uper/train/policy.h"

namespace uper {
namespace {

std::string StateName(std::size_t actor) { return "state/" + std::to_string(actor); }

void PlayOne(Actor& actor) {
  actor.was_reset = !actor.in_episode;
  if (actor.was_reset) {
    actor.environment->Reset(actor.observation);
  } else {
    actor.step = actor.environment->Step(actor.action, actor.observation);
  }
}

}  // namespace

Actors::Actors(const ActorsOptions& options, const EnvironmentMaker& make)
    : pool_({.threads = std::clamp(options.threads, 1, options.environments),
             .idle_spins = options.free_cores ? kSpinsOnFreeCores : kSpinsBetweenRounds}) {
  for (int i = 0; i < options.environments; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    actors_.push_back({.environment = make(index),
                       .exploration = RandomStream(options.seed, "exploration", index)});
    actors_.back().observation.resize(spec().observation_bytes());
  }
  q_.resize(actors_.size() * spec().actions);
  greedy_.resize(actors_.size());
  saved_states_.resize(actors_.size());
}

void Actors::Play(const std::function<void()>& beside) {
  pool_.ParallelTasks(
      static_cast<int>(actors_.size()), [this](int i) { PlayOne(actors_[i]); }, beside);
}

void Actors::StartPlaying() {
  background_.Start([this] { Play(); });
}

void Actors::ChooseActions(const std::function<void(std::span<float>)>& values, double epsilon) {
  const std::size_t actions = spec().actions;
  bool any_greedy = false;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    Actor& actor = actors_[i];
    if (!actor.in_episode) continue;
    const std::optional<int> random = RandomAction(actions, epsilon, actor.exploration);
    actor.action = random.value_or(0);
    greedy_[i] = random ? 0 : 1;
    any_greedy = any_greedy || !random;
  }
  if (!any_greedy) return;
  values(q_);
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    Actor& actor = actors_[i];
    if (!actor.in_episode || greedy_[i] == 0) continue;
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
