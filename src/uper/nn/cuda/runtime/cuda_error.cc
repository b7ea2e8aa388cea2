#include "uper/nn/cuda/runtime/cuda_error.h"

#include <string>

#include "uper/base/error.h"

namespace uper::cuda {
namespace {

bool IsOurMistake(cudaError_t status) {
  return status == cudaErrorInvalidValue || status == cudaErrorInvalidConfiguration ||
         status == cudaErrorInvalidDeviceFunction || status == cudaErrorIllegalAddress ||
         status == cudaErrorMisalignedAddress || status == cudaErrorAssert ||
         status == cudaErrorStreamCaptureInvalidated || status == cudaErrorStreamCaptureUnsupported;
}

}  // namespace

void CheckCuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it; otherwise the next launch would report this error
  const std::string reason = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) {
    throw Error(ErrorKind::kResources, "the GPU's memory is full (" + reason +
                                           "); end other programs or use a smaller " +
                                           "network or batch");
  }
  if (IsOurMistake(status)) throw Error(ErrorKind::kInternal, "CUDA: " + reason);
  throw Error(ErrorKind::kResources,
              "the GPU stopped working (" + reason + "); what was saved before is intact");
}

}  // namespace uper::cuda
