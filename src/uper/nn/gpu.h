#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "uper/nn/gpu_replay.h"
#include "uper/nn/learner.h"

namespace uper {

// The one door to nn/cuda: also there in builds without CUDA, where it says so.

struct GpuInfo {
  bool built = false;  // this build can use one
  bool usable = false;
  std::string why_not;  // if not usable
  std::string name;     // else
  std::int64_t memory_bytes = 0;
  std::int64_t free_bytes = 0;
};
// Asks the driver. Never throws; works without a GPU, without a driver and without CUDA.
GpuInfo FindGpu();

// A learner whose numbers live on the GPU. Its updates are the same bits whenever they are repeated
// on the same kind of GPU; they differ from the CPU's by rounding. BeginUpdate() returns as soon as
// the work is queued. State() copies everything to the host.
class GpuLearner : public Learner {
 public:
  // A replay memory beside it, whose updates are this learner's. At most one; it must not outlive
  // the learner. Throws Error(kResources) when the GPU's memory is too small.
  virtual std::unique_ptr<GpuReplay> MakeReplay(const GpuReplaySpec& spec) = 0;
};

// Throws Error(kResources) if FindGpu() finds none or its memory is too small.
std::unique_ptr<GpuLearner> MakeGpuLearner(const LearnerSpec& spec);

}  // namespace uper
