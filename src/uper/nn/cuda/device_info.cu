#include "uper/nn/cuda/device_info.h"

namespace uper {
namespace {

__global__ void ProbeKernel() {}

}  // namespace

GpuInfo FindCudaDevice() {
  GpuInfo info{.built = true};
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice ||
      (status == cudaSuccess && count == 0)) {
    int driver = 0;
    cudaGetLastError();  // clears it
    const bool none = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
    cudaGetLastError();
    info.why_not = none ? "there is no NVIDIA driver"
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
  info.why_not = status == cudaErrorNoKernelImageForDevice
                     ? info.name + " is of a kind that this build was not made for " +
                           "(CMAKE_CUDA_ARCHITECTURES)"
                     : std::string("the GPU does not answer: ") + cudaGetErrorString(status);
  return info;
}

}  // namespace uper
