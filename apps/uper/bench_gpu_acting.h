#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "uper/nn/gpu.h"

namespace uper {

// Decisions as training makes them on the GPU: the last frames of every environment are in its
// memory, and one new frame each comes from the host.
class GpuActing {
 public:
  // The learner's one replay memory belongs to it from now on. REQUIRES: the learner's observations
  // are stacks of byte planes.
  GpuActing(GpuLearner& learner, std::span<const std::byte> pixels);

  static bool Suits(const NetworkSpec& network);
  // One decision for each of `count` environments.
  void Act(int count);

 private:
  int depth() const { return network_.input.channels; }
  std::size_t frame_bytes() const {
    return std::size_t{1} * network_.input.height * network_.input.width;
  }

  const NetworkSpec network_;
  const std::vector<std::byte> pixels_;  // of one frame
  std::unique_ptr<GpuReplay> replay_;
  std::uint64_t next_frame_ = 0;
  std::vector<std::uint32_t> slots_;
  std::vector<float> q_;
};

}  // namespace uper
