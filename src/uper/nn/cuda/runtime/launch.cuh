#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "uper/nn/cuda/runtime/cuda_error.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// A kernel with LaunchOrder::kOverlapPrevious calls this before it touches data that other kernels
// write. Lets the next kernel start.
__device__ inline void AwaitPredecessor() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

// The same, if later kernels read data of earlier kernels before they wait: they start only when
// the earlier kernels have ended.
__device__ inline void AwaitPredecessors() {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}

struct LaunchShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  LaunchOrder order = LaunchOrder::kSerial;
  dim3 cluster = dim3(1, 1, 1);  // number of blocks that see each other's shared memory
};

template <typename... Parameters, typename... Arguments>
void LaunchKernel(const char* what, void (*kernel)(Parameters...), const LaunchShape& shape,
                  Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (shape.order == LaunchOrder::kOverlapPrevious) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = shape.cluster.x;
    attributes[count].val.clusterDim.y = shape.cluster.y;
    attributes[count++].val.clusterDim.z = shape.cluster.z;
  }
  // Multiples of 16 bytes, because the compiler may load the last floats as one vector.
  const std::size_t shared_bytes = (shape.shared_bytes + 15) / 16 * 16;
  // More than 48 KB of shared memory must be requested, including what the kernel itself declares.
  constexpr std::size_t kFreely = 24 * 1024;
  if (shared_bytes > kFreely) {
    CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)),
              what);
  }
  // All kernels get the same split between shared memory and cache: a multiprocessor must be empty
  // to change it.
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

}  // namespace uper::cuda
