#pragma once

// Small replay memories, on the GPU and on the host. Transitions are functions of their ids.

#include <cstring>
#include <memory>

#include "uper/base/random.h"
#include "uper/engine/cuda/cuda_replay.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/initialization.h"
#include "uper/nn/learner_data_for_tests.h"
#include "uper/replay/replay_buffer.h"

namespace uper::cuda {

inline constexpr int kBatch = 8;

inline void QueueOne(DeviceReplay& replay, const DeviceUpdate& update) {
  replay.QueueUpdates({&update, 1});
}

inline LearnerSpec SmallSpec(int stack) {
  NetworkSpec network{.input = {.height = 4, .width = 4, .channels = stack},
                      .dense = {8},
                      .hidden_units = 8,
                      .actions = 3,
                      .members = 2,
                      .outputs = 4};
  network.input.type = InputType::kUint8;
  network.input.layout = InputLayout::kPlanes;
  network.input.scale = 1.0F / 255;
  return {.network = network, .loss = {.head = HeadKind::kQuantile}, .batch = kBatch};
}

inline constexpr int kPixels = 16;

// Transitions and frames, each a function of its id, in rings as in a run.
class Store {
 public:
  explicit Store(const DeviceReplaySpec& spec) : spec_(spec) {}

  void Add(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      ++next_frame_;
      ++next_id_;
    }
    if (next_id_ - first_id_ > spec_.capacity) first_id_ = next_id_ - spec_.capacity;
  }
  void EvictBefore(std::uint64_t id) { first_id_ = std::max(first_id_, std::min(id, next_id_)); }

  RecordTail Tail(std::uint64_t id) const {
    return {.a_tm1 = static_cast<std::int32_t>(id % 3),
            .r_t = static_cast<float>(id % 7) - 3,
            .discount_t = id % 5 == 0 ? 0.0F : 0.9F,
            .noisy = id % 4 == 0 ? 1U : 0U,
            .mask = id % 3 + 1};
  }
  static std::byte Pixel(std::uint64_t frame, int i) {
    return static_cast<std::byte>((frame * 31 + i * 7) % 251);
  }
  // Frame j of the stack of s_tm1 (first = id) or s_t (first = id + 1); the newest frame is last.
  std::uint32_t SlotAt(std::uint64_t first, int j) const {
    const std::uint64_t back = spec_.stack_depth - 1 - j;
    if (back > first) return FrameStore::kZeroSlot;
    return static_cast<std::uint32_t>((first - back) % spec_.frame_capacity);
  }

  void ReadTransition(std::uint64_t id, std::byte* to) const {
    if (spec_.stack_depth > 0) {
      for (int which = 0; which < 2; ++which) {
        for (int j = 0; j < spec_.stack_depth; ++j) {
          const std::uint32_t slot = SlotAt(id + which, j);
          std::memcpy(to, &slot, sizeof(slot));
          to += sizeof(slot);
        }
      }
    } else {
      for (int which = 0; which < 2; ++which) {
        for (std::size_t i = 0; i < spec_.observation_bytes; ++i) {
          *to++ = Pixel(id + which, static_cast<int>(i));
        }
      }
    }
    const RecordTail tail = Tail(id);
    std::memcpy(to, &tail, sizeof(tail));
  }

  DeviceRecordSource Transitions() const {
    return {.first_id = first_id_,
            .next_id = next_id_,
            .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
              for (std::uint64_t id = begin; id < end; ++id) {
                ReadTransition(id, out.data() + (id - begin) * spec_.record_bytes);
              }
            }};
  }
  DeviceRecordSource Frames() const {
    const std::uint64_t next = next_frame_ + 1;  // s_t of the newest transition
    return {.first_id = next - std::min<std::uint64_t>(next, spec_.frame_capacity),
            .next_id = next,
            .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
              for (std::uint64_t frame = begin; frame < end; ++frame) {
                for (std::size_t i = 0; i < spec_.frame_bytes; ++i) {
                  out[(frame - begin) * spec_.frame_bytes + i] = Pixel(frame, static_cast<int>(i));
                }
              }
            }};
  }

  std::uint64_t first_id() const { return first_id_; }
  std::uint64_t next_id() const { return next_id_; }

  // The data that the host would gather for a batch.
  struct Batch {
    std::vector<std::byte> s_tm1, s_t;
    std::vector<std::int32_t> a_tm1;
    std::vector<float> r_t, discount_t;
    std::vector<std::uint64_t> masks;
  };
  Batch Gather(std::span<const std::uint64_t> ids) const {
    Batch batch;
    for (const std::uint64_t id : ids) {
      for (int which = 0; which < 2; ++which) {
        auto& to = which == 0 ? batch.s_tm1 : batch.s_t;
        const int frames = std::max(spec_.stack_depth, 1);
        for (int j = 0; j < frames; ++j) {
          const std::uint64_t newest = id + which;
          const std::uint64_t back = spec_.stack_depth > 0 ? spec_.stack_depth - 1 - j : 0;
          const std::size_t bytes =
              spec_.stack_depth > 0 ? spec_.frame_bytes : spec_.observation_bytes;
          for (std::size_t i = 0; i < bytes; ++i) {
            to.push_back(back > newest ? std::byte{0} : Pixel(newest - back, static_cast<int>(i)));
          }
        }
      }
      const RecordTail tail = Tail(id);
      batch.a_tm1.push_back(tail.a_tm1);
      batch.r_t.push_back(tail.r_t);
      batch.discount_t.push_back(tail.discount_t);
      batch.masks.push_back(tail.mask);
    }
    return batch;
  }

 private:
  const DeviceReplaySpec spec_;
  std::uint64_t first_id_ = 0, next_id_ = 0, next_frame_ = 0;
};

inline DeviceReplaySpec SpecOf(std::size_t capacity, int stack_depth) {
  DeviceReplaySpec spec{.capacity = capacity,
                        .stack_depth = stack_depth,
                        .priority_exponent = 1,
                        .uniform_mix = 0.01,
                        .rule = PriorityRule::kTd};
  if (stack_depth > 0) {
    spec.frame_bytes = kPixels;
    spec.frame_capacity = capacity + 20;
    spec.observation_bytes = stack_depth * kPixels;
    spec.record_bytes = 2 * stack_depth * sizeof(std::uint32_t) + sizeof(RecordTail);
  } else {
    spec.observation_bytes = kPixels;
    spec.record_bytes = 2 * kPixels + sizeof(RecordTail);
  }
  return spec;
}

inline void InitializeOnline(Learner& learner) {
  RandomStream stream(1, "parameters");
  InitializeUniform(learner.layout(), stream, learner.State().online);
  learner.CommitState(0);
  learner.CopyTarget();
}

inline std::vector<double> Uniforms(RandomStream& stream, int batch = kBatch) {
  std::vector<double> uniforms(batch);
  for (double& u : uniforms) u = stream.Uniform();
  return uniforms;
}

// A learner on the GPU with its replay memory. A replay buffer on the host and a learner on the CPU
// make the same updates.
struct Pair {
  Pair(const DeviceReplaySpec& spec, int stack)
      : store(spec),
        pool(1),
        cpu(SmallSpec(stack), pool),
        gpu(SmallSpec(stack)),
        replay(std::make_unique<CudaReplay>(spec, gpu)),
        buffer({.capacity = spec.capacity,
                .selection = {.priority_exponent = spec.priority_exponent,
                              .uniform_mix = spec.uniform_mix},
                .largest_priority_decay = spec.largest_priority_decay},
               RandomStream(3, "draws")) {
    InitializeOnline(cpu);
    InitializeOnline(gpu);
  }

  void Add(std::uint64_t count) {
    store.Add(count);
    for (std::uint64_t i = 0; i < count; ++i) buffer.Add();
  }
  void EvictBefore(std::uint64_t id) {
    store.EvictBefore(id);
    buffer.EvictBefore(id);
  }
  void MirrorHost() { replay->MirrorHost(store.Transitions(), store.Frames()); }

  // One update on the GPU with the random numbers of the host's stream.
  DeviceUpdateReport Update(double beta) {
    std::vector<double> uniforms(kBatch);
    buffer.DrawUniforms(uniforms);
    QueueOne(*replay, {.importance_exponent = beta, .uniforms = uniforms});
    return *replay->AwaitReport();
  }

  Store store;
  ThreadPool pool;
  cpu::CpuLearner cpu;
  CudaLearner gpu;
  std::unique_ptr<CudaReplay> replay;
  ReplayBuffer buffer;
};

}  // namespace uper::cuda
