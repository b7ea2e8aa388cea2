#pragma once

#include <memory>

#include "uper/base/random.h"
#include "uper/envs/minatar/game_random.h"
#include "uper/envs/wrappers/environment_wrapper.h"

namespace uper {

// With the given probability a step repeats the last executed action (Machado et al. 2018), which
// is 0 at first. As in MinAtar, a reset does not change the last action. Sticky actions are part of
// the task, so they do not set TimeStep::noisy.
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

// With the given probability replaces the action by one drawn uniformly from all. Such a step is
// noisy, even if the drawn action is the given one.
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
