#include "uper/replay/transition_replay.h"

#include <utility>

#include "uper/base/check.h"
#include "uper/replay/selectors/proportional_selector.h"

namespace uper {

template <typename Observations>
TransitionReplay<Observations>::TransitionReplay(const TransitionReplayOptions& options,
                                                 Observations observations,
                                                 const ReplayStreams& streams)
    : buffer_(options.buffer, streams.draws),
      observations_(std::move(observations)),
      fields_(options.buffer.capacity),
      masks_(options.buffer.capacity, options.masks, streams.masks) {
  UPER_CHECK(observations_.capacity() == options.buffer.capacity,
             "observations and replay buffer must have the same capacity");
}

template <typename Observations>
void TransitionReplay<Observations>::PutRow(std::uint64_t id,
                                            const Transition<Observation>& transition) {
  observations_.Put(id, transition.s_tm1, transition.s_t);  // only this call may throw
  fields_.Put(id, {.a_tm1 = transition.a_tm1,
                   .r_t = static_cast<float>(transition.r_t),
                   .discount_t = static_cast<float>(transition.discount_t),
                   .noisy = transition.noisy ? 1U : 0U});
  masks_.Draw(id);
}

template <typename Observations>
std::uint64_t TransitionReplay<Observations>::Add(const Transition<Observation>& transition) {
  PutRow(buffer_.next_id(), transition);
  return buffer_.Add();
}

template <typename Observations>
std::uint64_t TransitionReplay<Observations>::Add(const Transition<Observation>& transition,
                                                  double priority) {
  PutRow(buffer_.next_id(), transition);
  return buffer_.Add(priority);
}

template <typename Observations>
void TransitionReplay<Observations>::Sample(const WeightOptions& options, const BatchView& out) {
  buffer_.Sample(options, out.sample);
  for (std::size_t row = 0; row < out.sample.ids.size(); ++row) {
    Gather(out.sample.ids[row], row, out);
  }
}

template <typename Observations>
void TransitionReplay<Observations>::Gather(std::uint64_t id, std::size_t row,
                                            const BatchView& out) const {
  UPER_CHECK(buffer_.Contains(id), "no such transition");
  UPER_CHECK(row < out.a_tm1.size() && row < out.r_t.size() && row < out.discount_t.size() &&
                 row < out.masks.size() && (row + 1) * observation_bytes() <= out.s_tm1.size() &&
                 (row + 1) * observation_bytes() <= out.s_t.size(),
             "the batch is too small");
  const std::size_t begin = row * observation_bytes();
  observations_.Gather(id, out.s_tm1.subspan(begin, observation_bytes()),
                       out.s_t.subspan(begin, observation_bytes()));
  const TransitionFields fields = fields_.Get(id);
  out.a_tm1[row] = fields.a_tm1;
  out.r_t[row] = fields.r_t;
  out.discount_t[row] = fields.discount_t;
  out.masks[row] = masks_.Get(id);
}

template <typename Observations>
auto TransitionReplay<Observations>::GetState() const -> State {
  const std::uint64_t first = buffer_.first_id();
  const std::uint64_t next = buffer_.next_id();
  State state{.buffer = buffer_.GetState(),
              .fields = std::vector<TransitionFields>(size()),
              .masks = masks_.GetState(first, next),
              .observations = observations_.GetState(first, next)};
  fields_.CopyOut(first, state.fields);
  return state;
}

template <typename Observations>
void TransitionReplay<Observations>::SetState(const State& state) {
  const std::uint64_t first = state.buffer.first_id;
  const std::uint64_t next = state.buffer.next_id;
  buffer_.SetState(state.buffer);
  if (state.fields.size() != size()) {
    throw Error(ErrorKind::kCorrupt, "stored transitions do not match the replay buffer");
  }
  fields_.CopyIn(first, state.fields);
  masks_.SetState(state.masks, first, next);
  observations_.SetState(state.observations, first, next);
}

template <typename Observations>
void TransitionReplay<Observations>::CheckValid() const {
  buffer_.CheckValid();
  masks_.CheckValid();
  observations_.CheckValid();
  UPER_CHECK(buffer_.first_id() >= observations_.first_valid_id(),
             "a live transition has lost its observations");
}

template class TransitionReplay<WholeObservations>;
template class TransitionReplay<FrameStore>;

std::size_t FrameReplayMemoryBytes(const TransitionReplayOptions& options,
                                   const FrameStoreOptions& frames) {
  const std::size_t capacity = options.buffer.capacity;
  return ProportionalSelector::MemoryBytes(capacity) + FrameStore::MemoryBytes(frames) +
         ByteRing::MemoryBytes(capacity, sizeof(TransitionFields)) +
         MaskStore::MemoryBytes(capacity, options.masks);
}

}  // namespace uper
