#pragma once

#include <string>

#include "uper/base/random.h"
#include "uper/envs/bandit/conal_bandit.h"
#include "uper/envs/environment.h"

namespace uper {

// The conal bandit as an environment: one state, whose observation is the single byte 1; an episode
// is one pull of an arm. TimeStep::noisy stays false, because every arm is noisy.
class BanditEnvironment final : public Environment {
 public:
  BanditEnvironment(const std::string& name, const ConalBanditOptions& options,
                    const RandomStream& stream);

  static EnvironmentSpec Describe(const std::string& name, const ConalBanditOptions& options);

  const EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  // Constant after construction.
  ConalBandit bandit_;
  EnvironmentSpec spec_;

  RandomStream stream_;
};

}  // namespace uper
