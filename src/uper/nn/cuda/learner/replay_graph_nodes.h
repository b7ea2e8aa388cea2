#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/core/uncertainty.h"
#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// Where the learner expects a batch, in the GPU's memory.
struct BatchPointers {
  std::byte* observations = nullptr;  // s_tm1 [batch, observation], then s_t
  std::uint64_t* masks = nullptr;
  std::int32_t* a_tm1 = nullptr;
  float* r_t = nullptr;
  float* discount_t = nullptr;
  float* weights = nullptr;
};

// Statistics of an update's samples, in the GPU's memory.
struct SampleStatistics {
  const float* weights = nullptr;    // the importance weights of the batch
  const double* td_error = nullptr;  // [batch]
  const Uncertainty* uncertainty = nullptr;
};

// The replay memory's part of the learner's graphs. An update's graph draws the batch before the
// update. It records the statistics beside the backward pass, and the outcome at the end. The next
// batch may be drawn before that end. A decision's graph begins by gathering the observations.
class ReplayGraphNodes {
 public:
  virtual ~ReplayGraphNodes() = default;

  // `on_critical_path`: other work waits for the batch, so its kernels may use the whole GPU.
  // Otherwise they leave room for other kernels.
  virtual void EnqueueBatch(const BatchPointers& to, bool on_critical_path,
                            cudaStream_t stream) = 0;
  // Appends the transitions that arrived since the last call. Their address is read when the graph
  // runs.
  virtual void EnqueueAppend(cudaStream_t stream) = 0;
  virtual void RecordStatistics(const SampleStatistics& statistics, cudaStream_t stream) = 0;
  virtual void EnqueueEnd(const UpdateState* state, cudaStream_t stream, LaunchOrder order) = 0;
  // Gathers whole observations from their frames, whose addresses must be known.
  virtual void EnqueueObservations(const FramePointerEntry* frames, int count, std::byte* to,
                                   cudaStream_t stream) = 0;
};

}  // namespace uper::cuda
