#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "uper/nn/learner.h"

namespace uper {

// The one door to nn/cuda: also there in builds without CUDA, where it says so.

struct GpuInfo {
  bool built = false;  // this build can use one
  bool usable = false;
  std::string unusable_because;  // if not usable
  std::string name;              // else
  std::int64_t memory_bytes = 0;
  std::int64_t free_bytes = 0;
};
// Asks the driver. Never throws; works without a GPU, without a driver and without CUDA.
GpuInfo QueryGpu();

// A learner whose numbers live on the GPU. Its updates are the same bits whenever they are repeated
// on the same kind of GPU; they differ from the CPU's by rounding. State() copies everything to the
// host. Throws Error(kResources) if QueryGpu() finds none or its memory is too small.
std::unique_ptr<Learner> MakeGpuLearner(const LearnerSpec& spec);

}  // namespace uper
