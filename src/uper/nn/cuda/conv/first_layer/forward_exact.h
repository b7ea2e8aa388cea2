#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/conv/first_layer/forward.h"

namespace uper::cuda {

// LaunchFirstLayerForward() in fp32 with exact sums. Weights are rounded to multiples of 2^(e-31),
// where 2^e is the power of two above the filter's largest weight. Each sum is rounded once. If a
// weight is not finite, all results of its filter are NaN.
void LaunchFirstLayerForwardExact(const FirstLayerForward& call, cudaStream_t stream);

}  // namespace uper::cuda
