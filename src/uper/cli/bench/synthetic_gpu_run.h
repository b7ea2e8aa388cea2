#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/engine/device_replay.h"
#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper::cli {

// Decisions and updates as in training on the GPU, without environments. Frames and transitions are
// in the GPU's memory; each decision reads one new frame per environment from the host.
class SyntheticGpuRun {
 public:
  // Creates the learner's replay memory. All frames are copies of `pixels`. REQUIRES: Suits().
  SyntheticGpuRun(const RunConfig& config, const EnvironmentSpec& observations, Learner& learner,
                  std::span<const std::byte> pixels);

  // Whether observations are stacks of frames and the replay memory can be on the GPU.
  static bool Suits(const RunConfig& config, const EnvironmentSpec& observations);
  // Writes new frames of `count` environments to reserved memory.
  void Play(int count);
  // One decision for each of `count` environments. REQUIRES: Play(count) came before.
  void Act(int count);
  // Queues updates from random transitions; waits only when too many reports are open.
  void Update(int count);

 private:
  int depth() const { return replay_->spec().stack_depth; }
  std::uint32_t SlotOf(std::uint64_t frame) const;
  void PutTransition(std::byte* record);
  std::uint64_t DrawMask();
  void MirrorHost();

  const LearnerSpec learner_;
  const double mask_probability_;
  const std::vector<std::byte> pixels_;  // of one frame
  std::unique_ptr<DeviceReplay> replay_;
  RandomStream stream_;
  std::uint64_t next_frame_ = 0;
  std::uint64_t next_id_ = 0;  // of the transitions
  std::uint64_t queued_ = 0, reported_ = 0;
  std::vector<std::uint32_t> slots_;
  std::vector<float> q_;
  // Inputs of the updates of one call, [update, batch].
  std::vector<double> uniforms_;
  std::vector<std::uint64_t> ids_;
  const std::vector<float> weights_;  // [batch]
};

}  // namespace uper::cli
