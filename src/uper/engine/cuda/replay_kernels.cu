#include <algorithm>
#include <cstring>

#include "uper/engine/cuda/replay_kernels.h"
#include "uper/nn/cuda/observations/await_frame.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/cuda_error.h"
#include "uper/nn/cuda/runtime/launch.cuh"
#include "uper/replay/selectors/selection_math.h"
#include "uper/replay/selectors/stored_priority.h"

// Compiled without fused multiply-adds: sums and probabilities are the host's, bit for bit.

namespace uper {
namespace {

constexpr int kThreads = 128;      // of the kernels of one block
constexpr int kCopyThreads = 256;  // a block copies one frame or record
constexpr int kRebuildThreads = 256;
// Of a batch's blocks: as many as possible where it is waited for, few where other kernels need the
// room.
constexpr int kUrgentThreads = 1024;
constexpr int kPatientThreads = 256;
constexpr int kFrameThreads = 128;  // of those, for one frame

// Threads that work together: a block, or a part of it.
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

// What is copied does not change while the kernel runs.
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

// The root of a tree.
template <typename Reduction>
__device__ double Root(const double* nodes, const TreeShape& shape) {
  return ReduceNode<Reduction>(nodes + kTreeFanOut * (shape.nodes() - 1));
}

// Recomputes everything above the leaves slot_of(0), ..., slot_of(count - 1). By one whole block.
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

// Masses of what left and of what is new. By one block.
__device__ void GrowTree(const ReplayMemory& memory, const ReplayGrowth& growth) {
  const int left = static_cast<int>(growth.first_id - growth.old_first_id);
  const int added = static_cast<int>(growth.next_id - growth.old_next_id);
  const float largest = static_cast<float>(memory.numbers->largest_priority);
  const auto slot_of = [&](int j) {
    const std::uint64_t id = j < left ? growth.old_first_id + j : growth.old_next_id + (j - left);
    return static_cast<std::size_t>(id % memory.capacity);
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

// A frame or a transition.
__device__ void TakeOver(const ReplayMemory& memory, const ReplayGrowth& growth, int item) {
  if (item < growth.frame_count) {
    const std::size_t slot = (growth.first_frame + item) % memory.frame_capacity;
    CopyBytes(memory.frames + slot * memory.frame_bytes, growth.frames + item * memory.frame_bytes,
              memory.frame_bytes);
    return;
  }
  const std::uint64_t index = item - growth.frame_count;
  const std::size_t slot = (growth.old_next_id + index) % memory.capacity;
  CopyBytes(memory.records + slot * memory.record_bytes,
            growth.records + index * memory.record_bytes, memory.record_bytes);
}

// Tells the host when the last block is done.
__device__ void EndGrowth(ReplayNumbers& numbers, unsigned long long number,
                          const ReplayGrowths& growths) {
  __syncthreads();
  if (threadIdx.x > 0 || atomicAdd(&numbers.growth_blocks, 1U) + 1 < gridDim.x) return;
  numbers.growth_blocks = 0;
  numbers.growths = number + 1;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(growths.shown)),
               "l"(number + 1)
               : "memory");
}

// Block 0: the tree; the others: frames and transitions.
__global__ void __launch_bounds__(kCopyThreads)
    GrowKernel(const __grid_constant__ ReplayMemory memory,
               const __grid_constant__ ReplayGrowths growths) {
  __shared__ ReplayGrowth growth;
  const unsigned long long number = memory.numbers->growths;
  CopyBytes(reinterpret_cast<std::byte*>(&growth),
            reinterpret_cast<const std::byte*>(growths.ring + number % growths.size),
            sizeof(growth));
  __syncthreads();
  if (blockIdx.x == 0) {
    GrowTree(memory, growth);
  } else {
    for (int item = static_cast<int>(blockIdx.x) - 1; item < growth.items();
         item += gridDim.x - 1) {
      TakeOver(memory, growth, item);
    }
  }
  EndGrowth(*memory.numbers, number, growths);
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

// As Selector::SampleAt.
__device__ DrawnSlot DrawAt(const ReplayMemory& memory, const ReplayInputs& inputs, double total,
                            double uniform) {
  const auto at_fraction = [&](double fraction) {
    return SlotInRing(inputs.first_slot, UniformRank(fraction, inputs.size), memory.capacity);
  };
  if (!(total > 0)) return {at_fraction(uniform), 1.0 / static_cast<double>(inputs.size)};
  const double mix = memory.mix;
  const std::size_t slot = uniform < mix ? at_fraction(uniform / mix)
                                         : FindSlot(memory, (uniform - mix) / (1 - mix) * total);
  return {slot, MixedProbability(memory.sums[slot], total, mix, inputs.size)};
}

// As Selector::SmallestProbability.
__device__ double SmallestProbability(const ReplayMemory& memory, const ReplayInputs& inputs,
                                      double total) {
  if (!(total > 0)) return 1.0 / static_cast<double>(inputs.size);
  const bool some_without = memory.numbers->positive_count < inputs.size && memory.mix > 0;
  const double mass = some_without ? 0 : Root<MinReduction>(memory.minima, memory.shape);
  return MixedProbability(mass, total, memory.mix, inputs.size);
}

// Smallest of the block's values, in all threads. `scratch`: an entry a warp.
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

// What all samples of a draw need.
struct DrawState {
  std::size_t entry;  // of the rings
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

// Everything of a batch but its observations. By one block.
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
  if (threadIdx.x == 0) memory.numbers->massless = !state.given && !(state.total > 0) ? 1 : 0;
  const double unit =
      UnitProbability(memory, state.inputs, state.total, BlockMin(smallest, scratch));
  for (int j = static_cast<int>(threadIdx.x); j < draw.batch; j += kBatchThreads) {
    draw.out.weights[j] =
        state.given ? draw.given_weights[state.entry * draw.batch + j]
                    : RelativeWeight(draw.probabilities[j], unit, state.inputs.importance_exponent,
                                     LargestWeight(memory.normalization));
  }
}

// The two observations of a sample, frame by frame; groups of threads share the frames.
template <int kBatchThreads>
__device__ void GatherSample(const ReplayDraw& draw, int sample) {
  __shared__ std::size_t slot;
  const ReplayMemory& memory = draw.memory;
  // To find the slot again takes less time than to wait until it has been found.
  if (threadIdx.x == 0) slot = DrawState(draw).Sample(draw, sample).slot;
  __syncthreads();
  const std::byte* record = memory.records + slot * memory.record_bytes;
  const auto* slots = reinterpret_cast<const std::uint32_t*>(record);
  const int frames = memory.stack_depth > 0 ? memory.stack_depth : 1;  // of an observation
  const ThreadGroup group{threadIdx.x % kFrameThreads, kFrameThreads};
  for (int i = static_cast<int>(threadIdx.x) / kFrameThreads; i < 2 * frames;
       i += kBatchThreads / kFrameThreads) {
    const int which = i / frames;  // s_tm1 or s_t
    std::byte* to = draw.out.observations + static_cast<std::size_t>(which * draw.batch + sample) *
                                                memory.observation_bytes;
    if (memory.stack_depth == 0) {
      CopyBytes(to, record + which * memory.observation_bytes, memory.observation_bytes, group);
    } else {
      CopyFrame(memory, slots[i], to + i % frames * memory.frame_bytes, group);
    }
  }
}

// The first block draws, the others gather, each one sample: few of them read the host's memory.
template <int kBatchThreads>
__global__ void __launch_bounds__(kBatchThreads)
    BatchKernel(const __grid_constant__ ReplayDraw draw) {
  if (blockIdx.x == 0) {
    DrawSamples<kBatchThreads>(draw);
  } else {
    GatherSample<kBatchThreads>(draw, static_cast<int>(blockIdx.x) - 1);
  }
}

// A block a frame.
__global__ void __launch_bounds__(kCopyThreads)
    GatherStacksKernel(std::size_t frame_bytes, const PlaneEntry* frames, std::byte* observations) {
  const std::size_t index = blockIdx.x;
  const std::byte* frame = PlaneOf(frames[index].copies[0].bits);
  std::byte* to = observations + index * frame_bytes;
  if (frame == nullptr) {
    ZeroBytes(to, frame_bytes);
  } else {
    CopyBytes(to, frame, frame_bytes);
  }
}

// As ReplayBuffer::SetPriorities: the last valid entry for a slot wins, all valid ones count for
// the largest. `stored` [batch]: the priority, or negative where it is refused. By one block.
__device__ void SetPriorities(const ReplayMemory& memory, const std::uint32_t* slots,
                              const float* stored, int batch) {
  __shared__ unsigned largest_bits;  // floats that are not negative compare as their bits
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
  double largest = memory.numbers->largest_priority * memory.largest_decay;
  const double seen = static_cast<double>(__uint_as_float(largest_bits));
  largest = largest < static_cast<double>(kSmallestPriority)
                ? static_cast<double>(kSmallestPriority)
                : largest;
  memory.numbers->largest_priority = seen > largest ? seen : largest;
}

// One block. Shared memory: [batch] floats.
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
    reports.headers[entry].massless = memory.numbers->massless;
    ++memory.numbers->draws;
  }
  __threadfence_system();
}

__global__ void ReportKernel(ReplayNumbers* numbers, int ring, const StepState* step,
                             ReplayReportHeader* headers) {
  AwaitPredecessor();
  const unsigned long long update = numbers->reports;
  ReplayReportHeader& header = headers[update % ring];
  header.step = *step;
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
  return static_cast<unsigned>((items + kRebuildThreads - 1) / kRebuildThreads);
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

void LaunchGrow(const ReplayMemory& memory, const ReplayGrowths& growths, int items,
                cudaStream_t stream) {
  constexpr int kMostBlocks = 32;
  const auto blocks = static_cast<unsigned>(1 + std::clamp(items, 1, kMostBlocks));
  GrowKernel<<<blocks, kCopyThreads, 0, stream>>>(memory, growths);
  CheckCuda(cudaGetLastError(), "storing transitions");
}

void LaunchBatch(const ReplayDraw& draw, bool urgent, cudaStream_t stream) {
  LaunchKernel("drawing a batch",
               urgent ? BatchKernel<kUrgentThreads> : BatchKernel<kPatientThreads>,
               {.grid = static_cast<unsigned>(1 + draw.batch),
                .block = urgent ? kUrgentThreads : kPatientThreads,
                .stream = stream},
               draw);
}

void LaunchPriorities(const ReplayPriorities& call, cudaStream_t stream) {
  PrioritiesKernel<<<1, kThreads, call.batch * sizeof(float), stream>>>(call);
  CheckCuda(cudaGetLastError(), "setting priorities");
}

void LaunchReport(const ReplayMemory& memory, int ring, const StepState* step,
                  ReplayReportHeader* headers, cudaStream_t stream, Follow follow) {
  LaunchKernel("reporting an update", ReportKernel,
               {.grid = 1, .block = 1, .stream = stream, .follow = follow}, memory.numbers, ring,
               step, headers);
}

void LaunchGatherStacks(const ReplayMemory& memory, const PlaneEntry* frames, int count,
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

}  // namespace uper
