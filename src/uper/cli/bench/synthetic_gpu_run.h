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

namespace uper {

// Decisions and updates as training makes them on the GPU: frames and transitions are in its
// memory, and for a decision one new frame an environment comes from the host.
class SyntheticGpuRun {
 public:
  // The learner's one replay memory belongs to it from now on; `pixels` are shown in all frames.
  // REQUIRES: Suits().
  SyntheticGpuRun(const RunConfig& config, const EnvironmentSpec& observations, Learner& learner,
                  std::span<const std::byte> pixels);

  // Observations are stacks of frames, and the memory can be the GPU's.
  static bool Suits(const RunConfig& config, const EnvironmentSpec& observations);
  // The environments write new frames where the GPU will read them.
  void Play(int count);
  // One decision for each of `count` environments, which have played.
  void Act(int count);
  // Queues updates from random transitions; waits only for what was queued long before.
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
  // Of the updates that are queued at once, [update, batch].
  std::vector<double> uniforms_;
  std::vector<std::uint64_t> ids_;
  const std::vector<float> weights_;  // [batch], the same for all
};

}  // namespace uper
