#include "uper/nn/gpu.h"

#include "uper/base/error.h"

#ifdef UPER_CUDA
#include "uper/nn/cuda/cuda_learner.h"
#include "uper/nn/cuda/device_info.h"
#endif

namespace uper {

GpuInfo FindGpu() {
#ifdef UPER_CUDA
  return FindCudaDevice();
#else
  return {.why_not = "this build has no CUDA: nvcc was not there when it was configured"};
#endif
}

std::unique_ptr<GpuLearner> MakeGpuLearner([[maybe_unused]] const LearnerSpec& spec) {
  const GpuInfo gpu = FindGpu();
  if (!gpu.usable) throw Error(ErrorKind::kResources, "no GPU to learn on: " + gpu.why_not);
#ifdef UPER_CUDA
  return std::make_unique<CudaLearner>(spec);
#else
  return nullptr;
#endif
}

}  // namespace uper
