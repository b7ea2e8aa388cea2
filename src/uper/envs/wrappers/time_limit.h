#pragma once

#include <cstdint>
#include <memory>

#include "uper/envs/wrappers/environment_wrapper.h"

namespace uper {

// Truncates an episode (so the agent bootstraps) at the step that reaches the given number of
// frames, unless the game ends in that step. REQUIRES: limit_frames > 0.
class TimeLimit final : public EnvironmentWrapper {
 public:
  TimeLimit(std::unique_ptr<Environment> inner, std::int64_t limit_frames);

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  const std::int64_t limit_frames_;
  std::int64_t frames_ = 0;  // of this episode
};

}  // namespace uper
