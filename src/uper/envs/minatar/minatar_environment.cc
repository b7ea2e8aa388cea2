#include "uper/envs/minatar/minatar_environment.h"

#include <utility>

namespace uper {

using minatar::GameAction;

MinAtarEnvironment::MinAtarEnvironment(const std::string& name, const std::string& game,
                                       bool ramping, bool minimal_actions,
                                       std::unique_ptr<GameRandom> random)
    : game_(minatar::MakeGame(game, ramping)), random_(std::move(random)) {
  if (minimal_actions) {
    const auto minimal = game_->minimal_actions();
    actions_.assign(minimal.begin(), minimal.end());
  } else {
    for (int i = 0; i < minatar::kActionCount; ++i) actions_.push_back(static_cast<GameAction>(i));
  }
  spec_ = Describe(name, game, minimal_actions);
}

EnvironmentSpec MinAtarEnvironment::Describe(const std::string& name, const std::string& game,
                                             bool minimal_actions) {
  const auto rules = minatar::MakeGame(game, /*ramping=*/false);
  return {.name = name,
          .actions = minimal_actions ? static_cast<int>(rules->minimal_actions().size())
                                     : minatar::kActionCount,
          .height = minatar::kBoardSize,
          .width = minatar::kBoardSize,
          .channels = rules->channels(),
          .element_max = 1};
}

void MinAtarEnvironment::DoReset(std::span<std::byte> observation) {
  game_->Start(*random_);
  Draw(observation);
}

TimeStep MinAtarEnvironment::DoStep(int action, std::span<std::byte> observation) {
  const minatar::GameStep step = game_->Act(actions_[static_cast<std::size_t>(action)], *random_);
  Draw(observation);
  return {.reward = static_cast<double>(step.reward),
          .discount = step.over ? 0.0 : 1.0,
          .terminated = step.over};
}

void MinAtarEnvironment::DoSaveState(ByteWriter& writer) const {
  random_->Save(writer);
  game_->Save(writer);
}

void MinAtarEnvironment::DoRestoreState(ByteReader& reader) {
  random_->Restore(reader);
  game_->Restore(reader);
}

void MinAtarEnvironment::Draw(std::span<std::byte> observation) const {
  minatar::Frame frame(observation, spec_.channels);
  game_->Draw(frame);
}

}  // namespace uper
