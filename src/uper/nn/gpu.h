#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "uper/nn/learner.h"

namespace uper {

// The entry to nn/cuda for all except for engine/make_device_replay.cc and engine/cuda. Builds
// without CUDA have it too: there is no usable GPU for them.

struct GpuInfo {
  bool built = false;  // this build supports GPUs
  bool usable = false;
  std::string unusable_because;  // if not usable
  std::string name;              // if usable
  std::int64_t memory_bytes = 0;
  std::int64_t free_bytes = 0;
};
// Asks the driver. Never throws; works without a GPU, without a driver and without CUDA.
GpuInfo QueryGpu();

// A learner on the GPU. Repeated updates give the same bits on the same kind of GPU; they differ
// from the CPU's by rounding. State() copies everything to the host. Throws Error(kResources) if
// QueryGpu() finds no usable GPU or its memory is too small.
std::unique_ptr<Learner> MakeGpuLearner(const LearnerSpec& spec);

}  // namespace uper
