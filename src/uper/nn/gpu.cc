#include "uper/nn/gpu.h"

#include "uper/base/error.h"

#ifdef UPER_CUDA
#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/runtime/device_info.h"
#endif

namespace uper {

GpuInfo QueryGpu() {
#ifdef UPER_CUDA
  return cuda::FindCudaDevice();
#else
  return {.unusable_because = "this build has no CUDA: nvcc was not there when it was configured"};
#endif
}

std::unique_ptr<Learner> MakeGpuLearner([[maybe_unused]] const LearnerSpec& spec) {
  const GpuInfo gpu = QueryGpu();
  if (!gpu.usable)
    throw Error(ErrorKind::kResources, "no GPU to learn on: " + gpu.unusable_because);
#ifdef UPER_CUDA
  return std::make_unique<cuda::CudaLearner>(spec);
#else
  return nullptr;
#endif
}

}  // namespace uper
