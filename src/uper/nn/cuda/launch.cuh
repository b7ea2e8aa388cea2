#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "uper/nn/cuda/cuda_error.h"

namespace uper {

// How a kernel follows the one before it on its stream.
enum class Follow {
  kAfter,  // starts when everything before it has ended
  // May start while the kernel before it ends, and itself waits in AwaitPredecessor() before it
  // touches what that one wrote. Only right behind another kernel on the same stream.
  kOverlap,
};

// The first call of a kernel that may overlap: until then it may read only what no kernel writes.
// Lets the kernel behind it start.
__device__ inline void AwaitPredecessor() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

struct LaunchShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  Follow follow = Follow::kAfter;
};

template <typename... Parameters, typename... Arguments>
void LaunchKernel(const char* what, void (*kernel)(Parameters...), const LaunchShape& shape,
                  Arguments&&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  config.attrs = &attribute;
  config.numAttrs = shape.follow == Follow::kOverlap ? 1 : 0;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), what);
}

}  // namespace uper
