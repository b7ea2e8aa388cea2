#include "uper/engine/make_device_replay.h"

#include "uper/base/check.h"

#ifdef UPER_CUDA
#include "uper/engine/cuda/cuda_replay.h"
#endif

namespace uper {

#ifdef UPER_CUDA
std::unique_ptr<DeviceReplay> MakeDeviceReplay(const DeviceReplaySpec& spec, Learner& learner) {
  auto* const on_gpu = dynamic_cast<cuda::CudaLearner*>(&learner);
  UPER_CHECK(on_gpu != nullptr, "the learner must be on the GPU");
  return std::make_unique<cuda::CudaReplay>(spec, *on_gpu);
}
#else
std::unique_ptr<DeviceReplay> MakeDeviceReplay(const DeviceReplaySpec&, Learner&) {
  UPER_CHECK(false, "there is no learner on the GPU in a build without CUDA");
}
#endif

}  // namespace uper
