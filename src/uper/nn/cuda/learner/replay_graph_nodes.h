#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/core/uncertainty.h"
#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper {

// Where the learner wants a batch, in the GPU's memory.
struct BatchPointers {
  std::byte* observations = nullptr;  // s_tm1 [batch, observation], then s_t
  std::uint64_t* masks = nullptr;
  std::int32_t* a_tm1 = nullptr;
  float* r_t = nullptr;
  float* discount_t = nullptr;
  float* weights = nullptr;
};

// What an update found out about its samples, in the GPU's memory.
struct SampleFindings {
  const float* weights = nullptr;    // of the batch
  const double* td_error = nullptr;  // [batch]
  const Uncertainty* uncertainty = nullptr;
};

// Makes batches on the GPU and uses what updates find, as parts of the updates' graph: a batch
// before an update, what it found beside its backward pass, and what it did when it has ended. The
// batch of the next update may come before that end. Puts observations together to act on, as the
// first part of acting's graph.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // `urgent`: it is waited for and may take all the room it can use; else it leaves room for
  // others.
  virtual void EnqueueBatch(const BatchPointers& to, bool urgent, cudaStream_t stream) = 0;
  // What is new since the last time, from where it is said to be when the graph runs.
  virtual void EnqueueGrowth(cudaStream_t stream) = 0;
  virtual void EnqueueFindings(const SampleFindings& findings, cudaStream_t stream) = 0;
  virtual void EnqueueEnd(const StepState* step, cudaStream_t stream, Follow follow) = 0;
  // Whole observations from their planes, which are there.
  virtual void EnqueueObservations(const PlaneEntry* planes, int count, std::byte* to,
                                   cudaStream_t stream) = 0;
};

}  // namespace uper
