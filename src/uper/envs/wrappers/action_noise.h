#pragma once

#include <memory>

#include "uper/base/random.h"
#include "uper/envs/minatar/game_random.h"
#include "uper/envs/wrappers/environment_wrapper.h"

namespace uper {

// With the given probability a step executes the action executed last (Machado et al. 2018),
// starting with action 0. As in MinAtar the last action outlives the episode. Part of the task, so
// TimeStep::noisy stays as it is.
class StickyActions final : public EnvironmentWrapper {
 public:
  StickyActions(std::unique_ptr<Environment> inner, double probability,
                std::unique_ptr<GameRandom> random);

 protected:
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  const double probability_;
  std::unique_ptr<GameRandom> random_;
  int last_action_ = 0;
};

// With the given probability the action is replaced by one drawn uniformly from all; such a step is
// noisy, also when the draw hits the action that was meant.
class RandomActions final : public EnvironmentWrapper {
 public:
  RandomActions(std::unique_ptr<Environment> inner, double probability, const RandomStream& stream);

 protected:
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  const double probability_;
  RandomStream stream_;
};

}  // namespace uper
