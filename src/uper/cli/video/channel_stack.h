#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "uper/envs/environment.h"

namespace uper {

// What an agent sees: the newest spec.frame_stack observations of an episode, oldest first, as the
// channels of one picture [height, width, stack * channels]. Until there are so many, zeros stand
// behind them (A000, AB00, ABC0, ABCD, BCDE).
class ObservationStack {
 public:
  explicit ObservationStack(const EnvironmentSpec& spec);

  std::size_t bytes() const { return frames_.size(); }

  // At the start of an episode.
  void Clear();
  // REQUIRES: an observation of the environment.
  void Push(std::span<const std::byte> observation);
  // REQUIRES: `out` has bytes().
  void Write(std::span<std::byte> out) const;

 private:
  // Constant after construction.
  const std::size_t frame_bytes_;
  const std::size_t cell_bytes_;  // of all channels at one place
  const std::size_t depth_;

  std::vector<std::byte> frames_;  // [depth, frame]
  std::size_t count_ = 0;
};

}  // namespace uper
