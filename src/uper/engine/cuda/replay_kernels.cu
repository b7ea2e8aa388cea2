#include <algorithm>
#include <cstring>

#include "uper/base/arithmetic.h"
#include "uper/engine/cuda/replay_kernels.h"
#include "uper/nn/cuda/observations/await_frame.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/cuda_error.h"
#include "uper/nn/cuda/runtime/launch.cuh"
#include "uper/replay/ring.h"
#include "uper/replay/selectors/selection_math.h"
#include "uper/replay/selectors/stored_priority.h"

// Compiled without fused multiply-adds, so that sums and probabilities have the host's bits.

namespace uper::cuda {
namespace {

constexpr int kThreads = 128;      // of the kernels that have one block
constexpr int kCopyThreads = 256;  // a block copies one frame or record
constexpr int kRebuildThreads = 256;
// Threads of a block that draws or gathers. A batch on the critical path takes as much room as
// possible; a batch in the background leaves room for other kernels.
constexpr int kCriticalThreads = 1024;
constexpr int kBackgroundThreads = 256;
constexpr int kFrameThreads = 128;  // of those threads, for one frame

// Threads that work together: a block or a part of it.
struct ThreadGroup {
  unsigned thread, size;

  __device__ static ThreadGroup Block() { return {threadIdx.x, blockDim.x}; }
};

template <typename Word>
__device__ void CopyWords(std::byte* to, const std::byte* from, std::size_t bytes,
                          const ThreadGroup& group) {
#pragma unroll 4
  for (std::size_t i = group.thread; i < bytes / sizeof(Word); i += group.size) {
    reinterpret_cast<Word*>(to)[i] = __ldg(reinterpret_cast<const Word*>(from) + i);
  }
}

// REQUIRES: the source does not change while the kernel runs.
__device__ void CopyBytes(std::byte* to, const std::byte* from, std::size_t bytes,
                          const ThreadGroup& group = ThreadGroup::Block()) {
  const std::size_t alignment =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (alignment % sizeof(uint4) == 0) {
    CopyWords<uint4>(to, from, bytes, group);
  } else if (alignment % sizeof(unsigned) == 0) {
    CopyWords<unsigned>(to, from, bytes, group);
  } else {
    CopyWords<unsigned char>(to, from, bytes, group);
  }
}

__device__ void ZeroBytes(std::byte* to, std::size_t bytes,
                          const ThreadGroup& group = ThreadGroup::Block()) {
  for (std::size_t i = group.thread; i < bytes; i += group.size) to[i] = std::byte{0};
}

__device__ void CopyFrame(const ReplayMemory& memory, std::uint32_t slot, std::byte* to,
                          const ThreadGroup& group) {
  if (slot == FrameStore::kZeroSlot) {
    ZeroBytes(to, memory.frame_bytes, group);
  } else {
    CopyBytes(to, memory.frames + slot * memory.frame_bytes, memory.frame_bytes, group);
  }
}

// The value at the root of a tree.
template <typename Reduction>
__device__ double Root(const double* nodes, const TreeShape& shape) {
  return ReduceNode<Reduction>(nodes + kTreeFanOut * (shape.nodes() - 1));
}

// Recomputes all nodes above the leaves slot_of(0), ..., slot_of(count - 1). Needs a whole block.
template <typename Reduction, typename SlotOf>
__device__ void Climb(double* nodes, const TreeShape& shape, int count, const SlotOf& slot_of) {
  for (std::size_t level = 0; level + 1 < shape.levels; ++level) {
    __syncthreads();
    const double* below = nodes + kTreeFanOut * shape.level_begin[level];
    double* above = nodes + kTreeFanOut * shape.level_begin[level + 1];
    for (int j = static_cast<int>(threadIdx.x); j < count; j += static_cast<int>(blockDim.x)) {
      const std::size_t n = slot_of(j) >> (kTreeShift * (level + 1));
      above[n] = ReduceNode<Reduction>(below + kTreeFanOut * n);
    }
  }
  __syncthreads();
}

template <typename SlotOf>
__device__ void ClimbBoth(const ReplayMemory& memory, int count, const SlotOf& slot_of) {
  Climb<SumReduction>(memory.sums, memory.shape, count, slot_of);
  if (memory.minima != nullptr) {
    Climb<MinReduction>(memory.minima, memory.shape, count, slot_of);
  }
}

__device__ void SetLeaf(const ReplayMemory& memory, std::size_t slot, float priority) {
  const float former = memory.priorities[slot];
  memory.priorities[slot] = priority;
  const double mass = PriorityMass(priority, memory.exponent);
  memory.sums[slot] = mass;
  if (memory.minima != nullptr) memory.minima[slot] = mass > 0 ? mass : MinReduction::kIdentity;
  const int gain = (priority > 0 ? 1 : 0) - (former > 0 ? 1 : 0);
  if (gain != 0) {
    atomicAdd(&memory.numbers->positive_count,
              static_cast<unsigned long long>(static_cast<long long>(gain)));
  }
}

// Updates the masses of evicted and of new transitions. Needs a whole block.
__device__ void AppendToTree(const ReplayMemory& memory, const AppendBatch& append) {
  const int left = static_cast<int>(append.first_id - append.old_first_id);
  const int added = static_cast<int>(append.next_id - append.old_next_id);
  const float largest = static_cast<float>(memory.numbers->largest_priority);
  const auto slot_of = [&](int j) {
    const std::uint64_t id = j < left ? append.old_first_id + j : append.old_next_id + (j - left);
    return Ring{memory.capacity}.SlotOf(id);
  };
  for (int j = static_cast<int>(threadIdx.x); j < left; j += kCopyThreads) {
    SetLeaf(memory, slot_of(j), 0);
  }
  __syncthreads();
  for (int j = left + static_cast<int>(threadIdx.x); j < left + added; j += kCopyThreads) {
    SetLeaf(memory, slot_of(j), largest);
  }
  ClimbBoth(memory, left + added, slot_of);
}

// Copies one frame or one transition.
__device__ void CopyItem(const ReplayMemory& memory, const AppendBatch& append, int item) {
  if (item < append.frame_count) {
    const std::size_t slot = (append.first_frame + item) % memory.frame_capacity;
    CopyBytes(memory.frames + slot * memory.frame_bytes, append.frames + item * memory.frame_bytes,
              memory.frame_bytes);
    return;
  }
  const std::uint64_t index = item - append.frame_count;
  const std::size_t slot = (append.old_next_id + index) % memory.capacity;
  CopyBytes(memory.records + slot * memory.record_bytes,
            append.records + index * memory.record_bytes, memory.record_bytes);
}

// Reports the append to the host when the last block is done.
__device__ void EndAppend(ReplayNumbers& numbers, unsigned long long number,
                          const AppendRing& appends) {
  __syncthreads();
  if (threadIdx.x > 0 || atomicAdd(&numbers.append_blocks, 1U) + 1 < gridDim.x) return;
  numbers.append_blocks = 0;
  numbers.appends = number + 1;
  asm volatile(
      "st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(appends.appended)),
      "l"(number + 1)
      : "memory");
}

// Block 0 updates the tree; the other blocks copy frames and transitions.
__global__ void __launch_bounds__(kCopyThreads)
    AppendKernel(const __grid_constant__ ReplayMemory memory,
                 const __grid_constant__ AppendRing appends) {
  __shared__ AppendBatch append;
  const unsigned long long number = memory.numbers->appends;
  CopyBytes(reinterpret_cast<std::byte*>(&append),
            reinterpret_cast<const std::byte*>(appends.ring + number % appends.size),
            sizeof(append));
  __syncthreads();
  if (blockIdx.x == 0) {
    AppendToTree(memory, append);
  } else {
    for (int item = static_cast<int>(blockIdx.x) - 1; item < append.items();
         item += gridDim.x - 1) {
      CopyItem(memory, append, item);
    }
  }
  EndAppend(*memory.numbers, number, appends);
}

struct DrawnSlot {
  std::size_t slot;
  double probability;
};

__device__ std::size_t FindSlot(const ReplayMemory& memory, double mass) {
  double rest = SearchableMass(mass);
  std::size_t index = 0;
  for (std::size_t level = memory.shape.levels; level-- > 0;) {
    const double* node = memory.sums + kTreeFanOut * (memory.shape.level_begin[level] + index);
    double values[kTreeFanOut];
    for (std::size_t k = 0; k < kTreeFanOut; ++k) values[k] = node[k];
    index = index * kTreeFanOut + ChildFor(values, rest);
  }
  return index;
}

// Same as Selector::SampleAt.
__device__ DrawnSlot DrawAt(const ReplayMemory& memory, const ReplayInputs& inputs, double total,
                            double uniform) {
  const auto at_fraction = [&](double fraction) {
    return Ring{memory.capacity}.SlotAt(inputs.first_slot, UniformRank(fraction, inputs.size));
  };
  if (!(total > 0)) return {at_fraction(uniform), 1.0 / static_cast<double>(inputs.size)};
  const double mix = memory.mix;
  const std::size_t slot = uniform < mix ? at_fraction(uniform / mix)
                                         : FindSlot(memory, (uniform - mix) / (1 - mix) * total);
  return {slot, MixedProbability(memory.sums[slot], total, mix, inputs.size)};
}

// Same as Selector::SmallestProbability.
__device__ double SmallestProbability(const ReplayMemory& memory, const ReplayInputs& inputs,
                                      double total) {
  if (!(total > 0)) return 1.0 / static_cast<double>(inputs.size);
  const bool some_without = memory.numbers->positive_count < inputs.size && memory.mix > 0;
  const double mass = some_without ? 0 : Root<MinReduction>(memory.minima, memory.shape);
  return MixedProbability(mass, total, memory.mix, inputs.size);
}

// Smallest value of the block, returned to all threads. `scratch`: one entry per warp.
template <int kWarps>
__device__ double BlockMin(double value, double (&scratch)[kWarps]) {
  value = -WarpMax(-value);
  if (threadIdx.x % kWarpSize == 0) scratch[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  value = scratch[threadIdx.x % kWarps];
  return -WarpMax(-value);
}

__device__ RecordTail TailOf(const ReplayMemory& memory, std::size_t slot) {
  const std::byte* at = memory.records + (slot + 1) * memory.record_bytes - sizeof(RecordTail);
  RecordTail tail;
  if (memory.record_bytes % alignof(RecordTail) == 0) {
    tail = *reinterpret_cast<const RecordTail*>(at);
  } else {
    memcpy(&tail, at, sizeof(tail));
  }
  return tail;
}

__device__ double UnitProbability(const ReplayMemory& memory, const ReplayInputs& inputs,
                                  double total, double smallest_of_batch) {
  switch (memory.normalization) {
    case WeightNormalization::kNone:
      return 1 / static_cast<double>(inputs.size);
    case WeightNormalization::kBatchMax:
      return smallest_of_batch;
    case WeightNormalization::kBufferMax:
      return SmallestProbability(memory, inputs, total);
  }
  return 1;
}

// The part of a draw that all its samples share.
struct DrawState {
  std::size_t entry;  // index into the rings
  ReplayInputs inputs;
  double total;
  bool given;

  __device__ explicit DrawState(const ReplayDraw& draw)
      : entry(draw.memory.numbers->draws % draw.ring),
        inputs(draw.inputs[entry]),
        total(Root<SumReduction>(draw.memory.sums, draw.memory.shape)),
        given(draw.uniforms == nullptr) {}

  __device__ DrawnSlot Sample(const ReplayDraw& draw, int j) const {
    const std::size_t at = entry * draw.batch + j;
    if (given) return {draw.given_slots[at], 1};
    return DrawAt(draw.memory, inputs, total, draw.uniforms[at]);
  }
};

// Draws a batch and writes everything except the observations. Needs a whole block.
template <int kBatchThreads>
__device__ void DrawSamples(const ReplayDraw& draw) {
  __shared__ double scratch[kBatchThreads / kWarpSize];
  const ReplayMemory& memory = draw.memory;
  const DrawState state(draw);
  double smallest = 1;
  for (int j = static_cast<int>(threadIdx.x); j < draw.batch; j += kBatchThreads) {
    const DrawnSlot drawn = state.Sample(draw, j);
    draw.slots[j] = static_cast<std::uint32_t>(drawn.slot);
    draw.probabilities[j] = drawn.probability;
    smallest = drawn.probability < smallest ? drawn.probability : smallest;
    const RecordTail tail = TailOf(memory, drawn.slot);
    draw.out.a_tm1[j] = tail.a_tm1;
    draw.out.r_t[j] = tail.r_t;
    draw.out.discount_t[j] = tail.discount_t;
    draw.out.masks[j] = tail.mask;
    draw.noisy[j] = tail.noisy != 0 ? 1 : 0;
  }
  if (threadIdx.x == 0) {
    memory.numbers->uniform_fallback = !state.given && !(state.total > 0) ? 1 : 0;
  }
  const double unit =
      UnitProbability(memory, state.inputs, state.total, BlockMin(smallest, scratch));
  for (int j = static_cast<int>(threadIdx.x); j < draw.batch; j += kBatchThreads) {
    draw.out.weights[j] =
        state.given ? draw.given_weights[state.entry * draw.batch + j]
                    : RelativeWeight(draw.probabilities[j], unit, state.inputs.importance_exponent,
                                     LargestWeight(memory.normalization));
  }
}

// Copies both observations of a sample, frame by frame; groups of threads share the frames.
template <int kBatchThreads>
__device__ void GatherSample(const ReplayDraw& draw, int sample) {
  __shared__ std::size_t slot;
  const ReplayMemory& memory = draw.memory;
  // It takes less time to find the slot again than to wait for the block that draws.
  if (threadIdx.x == 0) slot = DrawState(draw).Sample(draw, sample).slot;
  __syncthreads();
  const std::byte* record = memory.records + slot * memory.record_bytes;
  const auto* slots = reinterpret_cast<const std::uint32_t*>(record);
  const int frames = memory.stack_depth > 0 ? memory.stack_depth : 1;  // per observation
  const ThreadGroup group{threadIdx.x % kFrameThreads, kFrameThreads};
  for (int i = static_cast<int>(threadIdx.x) / kFrameThreads; i < 2 * frames;
       i += kBatchThreads / kFrameThreads) {
    const int which = i / frames;  // 0: s_tm1, 1: s_t
    std::byte* to = draw.out.observations + static_cast<std::size_t>(which * draw.batch + sample) *
                                                memory.observation_bytes;
    if (memory.stack_depth == 0) {
      CopyBytes(to, record + which * memory.observation_bytes, memory.observation_bytes, group);
    } else {
      CopyFrame(memory, slots[i], to + i % frames * memory.frame_bytes, group);
    }
  }
}

// Block 0 draws; each other block gathers one sample. So few blocks read the host's memory.
template <int kBatchThreads>
__global__ void __launch_bounds__(kBatchThreads)
    BatchKernel(const __grid_constant__ ReplayDraw draw) {
  if (blockIdx.x == 0) {
    DrawSamples<kBatchThreads>(draw);
  } else {
    GatherSample<kBatchThreads>(draw, static_cast<int>(blockIdx.x) - 1);
  }
}

// One block per frame.
__global__ void __launch_bounds__(kCopyThreads)
    GatherStacksKernel(std::size_t frame_bytes, const FramePointerEntry* frames,
                       std::byte* observations) {
  const std::size_t index = blockIdx.x;
  const std::byte* frame = FrameAddress(frames[index].copies[0].bits);
  std::byte* to = observations + index * frame_bytes;
  if (frame == nullptr) {
    ZeroBytes(to, frame_bytes);
  } else {
    CopyBytes(to, frame, frame_bytes);
  }
}

// Same as ReplayBuffer::SetPriorities: the last valid entry for a slot wins, and all valid entries
// count for the largest priority. `stored` [batch]: the priority, or a negative number if it is
// refused. Needs a whole block.
__device__ void SetPriorities(const ReplayMemory& memory, const std::uint32_t* slots,
                              const float* stored, int batch) {
  __shared__ unsigned largest_bits;  // non-negative floats compare like their bits
  if (threadIdx.x == 0) largest_bits = 0;
  __syncthreads();
  for (int j = static_cast<int>(threadIdx.x); j < batch; j += kThreads) {
    if (stored[j] < 0) continue;
    atomicMax(&largest_bits, __float_as_uint(stored[j]));
    bool last = true;
    for (int k = j + 1; k < batch; ++k) last = last && (stored[k] < 0 || slots[k] != slots[j]);
    if (last) SetLeaf(memory, slots[j], stored[j]);
  }
  ClimbBoth(memory, batch, [&](int j) { return static_cast<std::size_t>(slots[j]); });
  if (threadIdx.x > 0) return;
  const double largest = DecayedLargest(memory.numbers->largest_priority, memory.largest_decay);
  const double seen = static_cast<double>(__uint_as_float(largest_bits));
  memory.numbers->largest_priority = seen > largest ? seen : largest;
}

// Runs as one block. Shared memory: [batch] floats.
__global__ void __launch_bounds__(kThreads)
    PrioritiesKernel(const __grid_constant__ ReplayPriorities call) {
  extern __shared__ float stored[];
  const ReplayMemory& memory = call.memory;
  const std::size_t entry = memory.numbers->draws % call.ring;
  const ReplayReports& reports = call.reports;
  for (int j = static_cast<int>(threadIdx.x); j < call.batch; j += kThreads) {
    const Uncertainty uncertainty = call.uncertainty[j];
    const double td_error = call.td_error[j];
    const Priority priority = ComputePriority(
        memory.rule, {.uncertainty = uncertainty, .td_error = td_error}, memory.limits);
    float value;
    stored[j] = AcceptPriority(priority.value, value) ? value : -1.0F;
    const std::size_t at = entry * call.batch + j;
    reports.slots[at] = call.slots[j];
    reports.probabilities[at] = call.probabilities[j];
    reports.weights[at] = call.weights[j];
    reports.noisy[at] = call.noisy[j];
    reports.td_error[at] = td_error;
    reports.uncertainty[at] = uncertainty;
    reports.priorities[at] = priority;
  }
  __syncthreads();
  if (memory.rule != PriorityRule::kUniform) {
    SetPriorities(memory, call.slots, stored, call.batch);
  }
  if (threadIdx.x == 0) {
    reports.headers[entry].uniform_fallback = memory.numbers->uniform_fallback;
    ++memory.numbers->draws;
  }
  __threadfence_system();
}

__global__ void ReportKernel(ReplayNumbers* numbers, int ring, const UpdateState* state,
                             ReplayReportHeader* headers) {
  AwaitPredecessor();
  const unsigned long long update = numbers->reports;
  ReplayReportHeader& header = headers[update % ring];
  header.update = *state;
  numbers->reports = update + 1;
  __threadfence_system();
  *const_cast<volatile unsigned long long*>(&header.sequence) = update + 1;
}

template <typename Reduction>
__global__ void LeavesKernel(const __grid_constant__ ReplayMemory memory, double* nodes) {
  const std::size_t i = blockIdx.x * std::size_t{kRebuildThreads} + threadIdx.x;
  if (i >= memory.shape.NodesOf(0) * kTreeFanOut) return;
  const double mass =
      i < memory.capacity ? PriorityMass(memory.priorities[i], memory.exponent) : 0.0;
  nodes[i] = mass > 0 ? mass : Reduction::kIdentity;
}

template <typename Reduction>
__global__ void LevelKernel(const __grid_constant__ TreeShape shape, std::size_t level,
                            double* nodes) {
  const std::size_t n = blockIdx.x * std::size_t{kRebuildThreads} + threadIdx.x;
  if (n >= shape.NodesOf(level + 1) * kTreeFanOut) return;
  const double* below = nodes + kTreeFanOut * shape.level_begin[level];
  nodes[kTreeFanOut * shape.level_begin[level + 1] + n] =
      n < shape.NodesOf(level) ? ReduceNode<Reduction>(below + kTreeFanOut * n)
                               : Reduction::kIdentity;
}

unsigned BlocksFor(std::size_t items) {
  return static_cast<unsigned>(CeilDiv<std::size_t>(items, kRebuildThreads));
}

template <typename Reduction>
void RebuildTree(const ReplayMemory& memory, double* nodes, cudaStream_t stream) {
  const TreeShape& shape = memory.shape;
  LeavesKernel<Reduction>
      <<<BlocksFor(shape.NodesOf(0) * kTreeFanOut), kRebuildThreads, 0, stream>>>(memory, nodes);
  for (std::size_t level = 0; level + 1 < shape.levels; ++level) {
    LevelKernel<Reduction>
        <<<BlocksFor(shape.NodesOf(level + 1) * kTreeFanOut), kRebuildThreads, 0, stream>>>(
            shape, level, nodes);
  }
}

}  // namespace

void LaunchAppend(const ReplayMemory& memory, const AppendRing& appends, int items,
                  cudaStream_t stream) {
  constexpr int kMaxBlocks = 32;
  const auto blocks = static_cast<unsigned>(1 + std::clamp(items, 1, kMaxBlocks));
  AppendKernel<<<blocks, kCopyThreads, 0, stream>>>(memory, appends);
  CheckCuda(cudaGetLastError(), "storing transitions");
}

void LaunchBatch(const ReplayDraw& draw, bool on_critical_path, cudaStream_t stream) {
  LaunchKernel("drawing a batch",
               on_critical_path ? BatchKernel<kCriticalThreads> : BatchKernel<kBackgroundThreads>,
               {.grid = static_cast<unsigned>(1 + draw.batch),
                .block = on_critical_path ? kCriticalThreads : kBackgroundThreads,
                .stream = stream},
               draw);
}

void LaunchPriorities(const ReplayPriorities& call, cudaStream_t stream) {
  PrioritiesKernel<<<1, kThreads, call.batch * sizeof(float), stream>>>(call);
  CheckCuda(cudaGetLastError(), "setting priorities");
}

void LaunchReport(const ReplayMemory& memory, int ring, const UpdateState* state,
                  ReplayReportHeader* headers, cudaStream_t stream, LaunchOrder order) {
  LaunchKernel("reporting an update", ReportKernel,
               {.grid = 1, .block = 1, .stream = stream, .order = order}, memory.numbers, ring,
               state, headers);
}

void LaunchGatherStacks(const ReplayMemory& memory, const FramePointerEntry* frames, int count,
                        std::byte* observations, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(count * memory.stack_depth);
  GatherStacksKernel<<<blocks, kCopyThreads, 0, stream>>>(memory.frame_bytes, frames, observations);
  CheckCuda(cudaGetLastError(), "gathering observations");
}

void LaunchRebuild(const ReplayMemory& memory, cudaStream_t stream) {
  RebuildTree<SumReduction>(memory, memory.sums, stream);
  if (memory.minima != nullptr) RebuildTree<MinReduction>(memory, memory.minima, stream);
  CheckCuda(cudaGetLastError(), "building the tree");
}

}  // namespace uper::cuda
