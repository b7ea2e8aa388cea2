#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/conv/first_layer/forward.h"

namespace uper {

// LaunchPixelConvolution() in fp32, with sums that are exact: a weight counts in units of 2^(e-31),
// where 2^e is the power of two above its filter's largest, and a sum is rounded once. Every result
// of a filter with a weight that is not finite is not a number.
void LaunchExactPixelConvolution(const PixelConvolution& call, cudaStream_t stream);

}  // namespace uper
