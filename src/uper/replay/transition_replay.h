#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/replay/replay_batch.h"
#include "uper/replay/replay_buffer.h"
#include "uper/replay/storage/byte_ring.h"
#include "uper/replay/storage/frame_store.h"
#include "uper/replay/storage/mask_store.h"
#include "uper/replay/storage/whole_observations.h"
#include "uper/replay/transition.h"

namespace uper {

struct TransitionReplayOptions {
  ReplayBufferOptions buffer;
  MaskStoreOptions masks;
};

// The random streams of a replay memory, by purpose.
struct ReplayStreams {
  explicit ReplayStreams(std::uint64_t seed)
      : draws(seed, "replay draws"), masks(seed, "bootstrap masks") {}

  RandomStream draws;
  RandomStream masks;
};

// The fields stored beside the observations.
struct TransitionFields {
  std::int32_t a_tm1 = 0;
  float r_t = 0;
  float discount_t = 0;
  std::uint32_t noisy = 0;  // injected noise touched one of its steps (telemetry)
};

// The replay memory of a trainer: a replay buffer (which transitions are live and how likely each
// draw is) and the storages of their content. `Observations` is WholeObservations (bytes stored
// whole) or FrameStore (stacked frames, each kept once).
//
// Rows never change once written and are found by id, so a saved range of ids is immutable; only
// priorities change. Not thread-safe: see shared_replay.h.
template <typename Observations>
class TransitionReplay {
 public:
  using Observation = typename Observations::Observation;

  struct State {
    ReplayBufferState buffer;
    std::vector<TransitionFields> fields;  // of the live ids, in order
    MaskStoreState masks;
    typename Observations::State observations;
  };

  // REQUIRES: observations.capacity() == options.buffer.capacity.
  TransitionReplay(const TransitionReplayOptions& options, Observations observations,
                   const ReplayStreams& streams);

  // Ids, priorities, counters.
  const ReplayBuffer& buffer() const { return buffer_; }
  ReplayBuffer& mutable_buffer() { return buffer_; }  // for draws that a device makes
  const Observations& observations() const { return observations_; }
  const MaskStore& masks() const { return masks_; }
  // For restoring observations piece by piece before SetState(): see
  // State::observations.already_loaded.
  Observations& mutable_observations() { return observations_; }
  std::size_t size() const { return buffer_.size(); }
  std::size_t observation_bytes() const { return observations_.observation_bytes(); }
  ReplayBatch MakeBatch(std::size_t batch) const { return {batch, observation_bytes()}; }

  // Stores a frame; later transitions refer to it by the returned id. May evict the oldest
  // transitions: those that use the overwritten frame.
  template <typename Store = Observations>
    requires std::same_as<Store, FrameStore>
  std::uint64_t AddFrame(std::span<const std::uint8_t> pixels) {
    const std::uint64_t frame = observations_.AddFrame(pixels);
    buffer_.EvictBefore(observations_.first_valid_id());
    return frame;
  }

  // Stores a transition with the largest priority, or with a given one (by the rules of
  // ReplayBuffer), and returns its id. If it throws, it has added nothing.
  std::uint64_t Add(const Transition<Observation>& transition);
  std::uint64_t Add(const Transition<Observation>& transition, double priority);

  // Fills the view with one draw per entry. REQUIRES: size() > 0, spans of equal length.
  void Sample(const WeightOptions& options, const BatchView& out);
  // Copies one transition by id to entry `row` of the view. REQUIRES: buffer().Contains(id).
  void Gather(std::uint64_t id, std::size_t row, const BatchView& out) const;

  // The fields stored beside the observations. REQUIRES: buffer().Contains(id).
  TransitionFields Fields(std::uint64_t id) const { return fields_.Get(id); }

  UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                             std::span<const double> priorities) {
    return buffer_.SetPriorities(ids, priorities);
  }
  void SetPriorityExponent(double exponent) { buffer_.SetPriorityExponent(exponent); }

  State GetState() const;
  // Throws Error(kCorrupt) if the state does not fit; the memory is then not to be used further.
  void SetState(const State& state);
  void CheckValid() const;

 private:
  void PutRow(std::uint64_t id, const Transition<Observation>& transition);

  ReplayBuffer buffer_;
  Observations observations_;
  TypedRing<TransitionFields> fields_;
  MaskStore masks_;
};

extern template class TransitionReplay<WholeObservations>;
extern template class TransitionReplay<FrameStore>;

using WholeReplay = TransitionReplay<WholeObservations>;
using FrameReplay = TransitionReplay<FrameStore>;

// The bytes that a FrameReplay with a proportional selector will allocate.
std::size_t FrameReplayMemoryBytes(const TransitionReplayOptions& options,
                                   const FrameStoreOptions& frames);

}  // namespace uper
