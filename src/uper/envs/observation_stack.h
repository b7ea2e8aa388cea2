#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "uper/envs/environment.h"

namespace uper {

// What an agent sees that plays without a memory (evaluation, rollout): the newest
// spec().frame_stack observations as [stack, observation], oldest first, zeros behind while an
// episode is younger. The same bytes as FrameExperience::current(). Not thread-safe.
class AgentView {
 public:
  explicit AgentView(const EnvironmentSpec& spec);

  // Where the environment writes its next observation; then Start() if it was the first of an
  // episode, else Push().
  std::span<std::byte> next() { return next_; }
  void Start();
  void Push();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> next_;
  std::vector<std::byte> bytes_;
  std::size_t depth_;
  std::size_t count_ = 0;  // observations in bytes_
};

}  // namespace uper
