#pragma once

#include "uper/nn/gpu.h"

namespace uper::cuda {

// QueryGpu() of a build with CUDA: describes the first visible device (CUDA_VISIBLE_DEVICES).
GpuInfo FindCudaDevice();

}  // namespace uper::cuda
