#pragma once

#include <cuda_runtime_api.h>

namespace uper {

// Throws what a failed call means for the user: Error(kResources) when memory ran out or the GPU
// can no longer be used, Error(kInternal) when the call itself was wrong. `what` names the call.
void CheckCuda(cudaError_t status, const char* what);

}  // namespace uper
