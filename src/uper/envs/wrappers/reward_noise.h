#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "uper/base/random.h"
#include "uper/envs/wrappers/environment_wrapper.h"

namespace uper {

// A hash of an observation, as a number in [0, 1). The numbers of different observations are spread
// evenly. They are the same in every run and on every machine.
double ObservationHash(std::span<const std::byte> observation);

// Adds sd * N(0, 1) to the reward of every step whose action was taken in a noisy state, and marks
// these steps as noisy. A state is noisy if the ObservationHash of its observation is below
// `share`. With share = 1 all states are noisy.
class RewardNoise final : public EnvironmentWrapper {
 public:
  RewardNoise(std::unique_ptr<Environment> inner, double sd, double share,
              const RandomStream& stream);

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  bool IsNoisy(std::span<const std::byte> observation) const;

  const double sd_;
  const double share_;
  RandomStream stream_;
  bool in_noisy_state_ = false;  // the state in which the next action is taken
};

}  // namespace uper
