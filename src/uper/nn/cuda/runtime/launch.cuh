#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "uper/nn/cuda/runtime/cuda_error.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper {

// What a kernel that may overlap (Follow::kOverlap) calls before it touches what other kernels
// write. Lets the kernel behind it start.
__device__ inline void AwaitPredecessor() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

// The same where kernels behind it read, before they wait, what kernels before it write: they start
// when those have ended.
__device__ inline void AwaitPredecessors() {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}

struct LaunchShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  Follow follow = Follow::kAfter;
  dim3 cluster = dim3(1, 1, 1);  // blocks that see each other's shared memory
};

template <typename... Parameters, typename... Arguments>
void LaunchKernel(const char* what, void (*kernel)(Parameters...), const LaunchShape& shape,
                  Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (shape.follow == Follow::kOverlap) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = shape.cluster.x;
    attributes[count].val.clusterDim.y = shape.cluster.y;
    attributes[count++].val.clusterDim.z = shape.cluster.z;
  }
  // Whole groups of 16 bytes: the compiler likes to read the last ones at once.
  const std::size_t shared_bytes = (shape.shared_bytes + 15) / 16 * 16;
  // More shared memory must be asked for: 48 KB, what the kernel itself declares included.
  constexpr std::size_t kFreely = 24 * 1024;
  if (shared_bytes > kFreely) {
    CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)),
              what);
  }
  // All kernels with the same share of shared memory and cache: to change it, a multiprocessor
  // would have to be empty.
  CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                 cudaSharedmemCarveoutMaxShared),
            what);
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = shape.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), what);
}

}  // namespace uper
