#pragma once

#include <memory>
#include <string>
#include <vector>

#include "uper/envs/environment.h"
#include "uper/envs/minatar/game_random.h"
#include "uper/envs/minatar/minatar_game.h"

namespace uper {

// One MinAtar game as an environment: uint8 observations [10, 10, channels] of 0 and 1; actions
// no-op, left, up, right, down, fire, or the game's minimal ones in that order. An episode ends by
// `terminated` alone, also freeway's after its 2501 steps, as in the published results. A wrapper
// makes actions sticky (envs/wrappers/action_noise.h).
class MinAtarEnvironment final : public Environment {
 public:
  // The sticky probability of the published results.
  static constexpr double kDefaultSticky = 0.1;

  // `name` is the environment's ("minatar/breakout"), `game` the part after the slash ("breakout").
  MinAtarEnvironment(const std::string& name, const std::string& game, bool ramping,
                     bool minimal_actions, std::unique_ptr<GameRandom> random);

  // The specification of such an environment.
  static EnvironmentSpec Describe(const std::string& name, const std::string& game,
                                  bool minimal_actions);

  const EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  void Draw(std::span<std::byte> observation) const;

  // Constant after construction.
  EnvironmentSpec spec_;
  std::vector<minatar::GameAction> actions_;  // [action of the environment]

  std::unique_ptr<minatar::MinAtarGame> game_;
  std::unique_ptr<GameRandom> random_;
};

}  // namespace uper
