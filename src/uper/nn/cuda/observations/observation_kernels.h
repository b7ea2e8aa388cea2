#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/network_spec.h"

namespace uper::cuda {

// Converts observations to what the network reads: floats, channels last, scaled. `from` holds
// `count` observations of input.type in input.layout.
void LaunchConvertObservations(const InputSpec& input, const void* from, int count, float* to,
                               cudaStream_t stream);

}  // namespace uper::cuda
