#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/core/host_device.h"
#include "uper/engine/device_replay.h"
#include "uper/nn/cuda/learner/replay_graph_nodes.h"
#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/replay/trees/tree_math.h"

namespace uper::cuda {

// The state of a replay memory that changes on the GPU.
struct ReplayNumbers {
  double largest_priority = 1;
  unsigned long long positive_count = 0;  // items of positive priority
  // Counts since construction. They select the entry of the input ring and of the report ring. The
  // next draw may run before the report of the previous update.
  unsigned long long draws = 0;
  unsigned long long reports = 0;
  unsigned long long appends = 0;
  unsigned append_blocks = 0;  // finished blocks of the append in progress
  int uniform_fallback = 0;    // whether the last draw was uniform because no item had mass
};

// Addresses and parameters of a replay memory; DeviceReplaySpec explains the parameters.
struct ReplayMemory {
  explicit ReplayMemory(const DeviceReplaySpec& spec)
      : capacity(spec.capacity),
        record_bytes(spec.record_bytes),
        observation_bytes(spec.observation_bytes),
        stack_depth(spec.stack_depth),
        frame_bytes(spec.frame_bytes),
        frame_capacity(spec.frame_capacity),
        exponent(spec.priority_exponent),
        mix(spec.uniform_mix),
        normalization(spec.normalization),
        largest_decay(spec.largest_priority_decay),
        rule(spec.rule),
        limits(spec.limits),
        shape(spec.capacity) {}

  std::size_t capacity, record_bytes, observation_bytes;
  int stack_depth;
  std::size_t frame_bytes, frame_capacity;
  double exponent, mix;
  WeightNormalization normalization;
  double largest_decay;
  PriorityRule rule;
  PriorityLimits limits;
  TreeShape shape;

  std::byte* records = nullptr;  // [capacity, record_bytes]
  std::byte* frames = nullptr;   // [frame_capacity, frame_bytes]
  float* priorities = nullptr;   // [capacity]; 0 where nothing is stored
  double* sums = nullptr;        // masses, [node, 8]
  double* minima = nullptr;      // positive masses, [node, 8]; only for kBufferMax
  ReplayNumbers* numbers = nullptr;
};

// The transitions that the host has added and evicted. New records are in pinned memory.
// REQUIRES: old_first_id <= first_id <= old_next_id <= next_id.
struct AppendBatch {
  std::uint64_t old_first_id = 0, first_id = 0;  // [old_first_id, first_id) are evicted
  std::uint64_t old_next_id = 0, next_id = 0;    // [old_next_id, next_id) are new
  std::uint64_t first_frame = 0;
  int frame_count = 0;
  const std::byte* records = nullptr;  // the new transitions
  const std::byte* frames = nullptr;

  UPER_HOST_DEVICE int items() const {
    return frame_count + static_cast<int>(next_id - old_next_id);
  }
};
// The append requests. Each launch handles one; ReplayNumbers::appends selects the ring entry.
struct AppendRing {
  const AppendBatch* ring = nullptr;  // [size], pinned
  int size = 0;
  // In the host's memory: the number of finished appends, whose sources may be overwritten.
  std::uint64_t* appended = nullptr;
};
// `items`: approximate number of frames and transitions. Affects speed only.
void LaunchAppend(const ReplayMemory& memory, const AppendRing& appends, int items,
                  cudaStream_t stream);

// Inputs of one update, in pinned memory; ReplayNumbers::draws selects the ring entry.
struct ReplayInputs {
  std::uint64_t first_slot = 0;
  std::uint64_t size = 0;
  double importance_exponent = 0;
};

struct ReplayDraw {
  ReplayMemory memory;
  int batch = 0;
  int ring = 0;                          // entries of each ring
  const ReplayInputs* inputs = nullptr;  // [ring], pinned
  const double* uniforms = nullptr;      // [ring, batch], pinned; null: the host draws and gives
  const std::uint32_t* given_slots = nullptr;  // [ring, batch], pinned
  const float* given_weights = nullptr;        // [ring, batch], pinned
  std::uint8_t* noisy = nullptr;               // [batch], out
  std::uint32_t* slots = nullptr;              // [batch], out
  double* probabilities = nullptr;             // [batch], out
  BatchPointers out;
};
// Draws a batch: slots, probabilities, weights and all data. `on_critical_path`: see
// ReplayGraphNodes.
void LaunchBatch(const ReplayDraw& draw, bool on_critical_path, cudaStream_t stream);

// The report of an update to the host: rings in pinned memory, [ring, batch] except `headers`.
struct ReplayReportHeader {
  UpdateState update;
  int uniform_fallback = 0;
  unsigned long long sequence = 0;  // written last: 1 + number of the update
};
struct ReplayReports {
  ReplayReportHeader* headers = nullptr;
  std::uint32_t* slots = nullptr;
  double* probabilities = nullptr;
  float* weights = nullptr;
  std::uint8_t* noisy = nullptr;
  double* td_error = nullptr;
  Uncertainty* uncertainty = nullptr;
  Priority* priorities = nullptr;
};
struct ReplayPriorities {
  ReplayMemory memory;
  int batch = 0;
  int ring = 0;
  const std::uint32_t* slots = nullptr;  // of the draw
  const double* probabilities = nullptr;
  const std::uint8_t* noisy = nullptr;
  const float* weights = nullptr;
  const double* td_error = nullptr;
  const Uncertainty* uncertainty = nullptr;
  ReplayReports reports;
};
// Computes priorities, updates the tree and writes the report except its final header field. The
// next draw may follow.
void LaunchPriorities(const ReplayPriorities& call, cudaStream_t stream);
// Writes the rest of the header, last of all.
void LaunchReport(const ReplayMemory& memory, int ring, const UpdateState* state,
                  ReplayReportHeader* headers, cudaStream_t stream, LaunchOrder order);

// Copies frames to observations [count, stack_depth, frame].
void LaunchGatherStacks(const ReplayMemory& memory, const FramePointerEntry* frames, int count,
                        std::byte* observations, cudaStream_t stream);

// Recomputes all masses and sums from `priorities`.
void LaunchRebuild(const ReplayMemory& memory, cudaStream_t stream);

}  // namespace uper::cuda
