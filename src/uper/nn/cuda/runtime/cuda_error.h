#pragma once

#include <cuda_runtime_api.h>

namespace uper::cuda {

// Throws if a CUDA call failed. Error(kResources): memory ran out, or the GPU can no longer be
// used. Error(kInternal): the call itself was invalid. `what` names the call.
void CheckCuda(cudaError_t status, const char* what);

}  // namespace uper::cuda
