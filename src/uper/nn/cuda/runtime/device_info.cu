#include <cstdlib>

#include "uper/nn/cuda/runtime/device_info.h"

namespace uper::cuda {
namespace {

__global__ void ProbeKernel() {}

}  // namespace

GpuInfo FindCudaDevice() {
  // The driver's default of 8 hardware queues makes many runs in one process wait for each other.
  // The driver only reads this variable when it starts, and CUDA has no call for it. So the library
  // sets it here, before the first CUDA call, and keeps a value that the user has set.
  static const int queues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  static_cast<void>(queues);
  GpuInfo info{.built = true};
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice ||
      (status == cudaSuccess && count == 0)) {
    int driver = 0;
    cudaGetLastError();  // clears the error
    const bool none = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
    cudaGetLastError();
    info.unusable_because = none ? "there is no NVIDIA driver"
                            : status == cudaErrorInsufficientDriver
                                ? "the NVIDIA driver is older than CUDA " +
                                      std::to_string(CUDART_VERSION / 1000) + " needs"
                                : "the NVIDIA driver sees no GPU";
    return info;
  }
  cudaDeviceProp properties{};
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, 0);
  if (status == cudaSuccess) {
    info.name = properties.name;
    info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    cudaFuncAttributes attributes{};
    status = cudaFuncGetAttributes(&attributes, ProbeKernel);
  }
  if (status == cudaSuccess) {
    info.usable = true;
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
      info.free_bytes = static_cast<std::int64_t>(free);
    }
    return info;
  }
  cudaGetLastError();
  info.unusable_because =
      status == cudaErrorNoKernelImageForDevice
          ? info.name + " is too old: compute capability 9.0 (H100) is needed"
          : std::string("the GPU does not answer: ") + cudaGetErrorString(status);
  return info;
}

}  // namespace uper::cuda
