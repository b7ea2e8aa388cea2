#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/core/host_device.h"
#include "uper/engine/device_replay.h"
#include "uper/nn/cuda/learner/batch_source.h"
#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/replay/trees/tree_math.h"

namespace uper {

// The numbers of a replay memory that change on the GPU.
struct ReplayNumbers {
  double largest_priority = 1;
  unsigned long long positive_count = 0;  // items of positive priority
  // Since construction: which inputs are due, and which report. The next draw may come before the
  // report on the last one.
  unsigned long long draws = 0;
  unsigned long long reports = 0;
  unsigned long long growths = 0;
  unsigned growth_blocks = 0;  // of the growth under way that are done
  int massless = 0;            // of the last draw
};

// Where everything of a replay memory lies; see DeviceReplaySpec for what the numbers mean.
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
  double* sums = nullptr;        // [node, 8] of masses
  double* minima = nullptr;      // [node, 8] of positive masses; kBufferMax alone
  ReplayNumbers* numbers = nullptr;
};

// What the host has added and removed; the new records are in pinned memory.
// REQUIRES: old_first_id <= first_id <= old_next_id <= next_id.
struct ReplayGrowth {
  std::uint64_t old_first_id = 0, first_id = 0;  // [old_first_id, first_id) left
  std::uint64_t old_next_id = 0, next_id = 0;    // [old_next_id, next_id) are new
  std::uint64_t first_frame = 0;
  int frame_count = 0;
  const std::byte* records = nullptr;  // of the new transitions
  const std::byte* frames = nullptr;

  UPER_HOST_DEVICE int items() const {
    return frame_count + static_cast<int>(next_id - old_next_id);
  }
};
// Those that the GPU takes over, one a launch: the ring is indexed by ReplayNumbers::growths.
struct ReplayGrowths {
  const ReplayGrowth* ring = nullptr;  // [size], pinned
  int size = 0;
  // How many it has taken over, shown to the host: what they name has been read.
  std::uint64_t* shown = nullptr;
};
// `items`: about how many frames and transitions there are, for speed alone.
void LaunchGrow(const ReplayMemory& memory, const ReplayGrowths& growths, int items,
                cudaStream_t stream);

// One update's inputs, in pinned memory: the ring is indexed by ReplayNumbers::draws.
struct ReplayInputs {
  std::uint64_t first_slot = 0;
  std::uint64_t size = 0;
  double importance_exponent = 0;
};

struct ReplayDraw {
  ReplayMemory memory;
  int batch = 0;
  int ring = 0;                                // entries of the rings
  const ReplayInputs* inputs = nullptr;        // [ring], pinned
  const double* uniforms = nullptr;            // [ring, batch], pinned; or null and
  const std::uint32_t* given_slots = nullptr;  // [ring, batch], pinned
  const float* given_weights = nullptr;        // [ring, batch], pinned
  std::uint8_t* noisy = nullptr;               // [batch], out
  std::uint32_t* slots = nullptr;              // [batch], out
  double* probabilities = nullptr;             // [batch], out
  BatchPointers out;
};
// Slots, probabilities, weights and everything else of a batch. `urgent`: see BatchSource.
void LaunchBatch(const ReplayDraw& draw, bool urgent, cudaStream_t stream);

// What an update found, for the host: rings in pinned memory, of `batch` entries but the first.
struct ReplayReportHeader {
  StepState step;
  int massless = 0;
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
// Priorities, tree, and the report but for the end of its header; the next draw is due afterwards.
void LaunchPriorities(const ReplayPriorities& call, cudaStream_t stream);
// The rest of the header, last of all.
void LaunchReport(const ReplayMemory& memory, int ring, const StepState* step,
                  ReplayReportHeader* headers, cudaStream_t stream, Follow follow);

// observations [count, stack_depth, frame].
void LaunchGatherStacks(const ReplayMemory& memory, const PlaneEntry* frames, int count,
                        std::byte* observations, cudaStream_t stream);

// All masses and sums from `priorities`.
void LaunchRebuild(const ReplayMemory& memory, cudaStream_t stream);

}  // namespace uper
