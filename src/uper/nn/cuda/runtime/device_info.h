#pragma once

#include "uper/nn/gpu.h"

namespace uper {

// QueryGpu() of a build with CUDA: the first device that is visible (CUDA_VISIBLE_DEVICES).
GpuInfo FindCudaDevice();

}  // namespace uper
