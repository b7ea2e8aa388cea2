#include "uper/replay/storage/whole_observations.h"

#include <cstring>

#include "uper/base/check.h"

namespace uper {

WholeObservations::WholeObservations(std::size_t capacity, std::size_t observation_bytes)
    : records_(capacity, 2 * observation_bytes) {}

void WholeObservations::Put(std::uint64_t id, Observation s_tm1, Observation s_t) {
  UPER_CHECK(s_tm1.size() == observation_bytes() && s_t.size() == observation_bytes(),
             "an observation of the wrong size");
  const std::span<std::byte> record = records_.Slot(id);
  std::memcpy(record.data(), s_tm1.data(), s_tm1.size());
  std::memcpy(record.data() + s_tm1.size(), s_t.data(), s_t.size());
}

void WholeObservations::Gather(std::uint64_t id, std::span<std::byte> s_tm1,
                               std::span<std::byte> s_t) const {
  UPER_CHECK(s_tm1.size() == observation_bytes() && s_t.size() == observation_bytes(),
             "memory of the wrong size");
  const std::span<const std::byte> record = records_.Get(id);
  std::memcpy(s_tm1.data(), record.data(), observation_bytes());
  std::memcpy(s_t.data(), record.data() + observation_bytes(), observation_bytes());
}

WholeObservations::State WholeObservations::GetState(std::uint64_t first,
                                                     std::uint64_t next) const {
  State state{.first_id = first, .rows = {}};
  state.rows.resize((next - first) * records_.record_bytes());
  records_.CopyOut(first, state.rows);
  return state;
}

void WholeObservations::SetState(const State& state, std::uint64_t first, std::uint64_t next) {
  if (state.first_id != first || next < first || next - first > capacity() ||
      state.rows.size() != (state.already_loaded ? 0 : (next - first) * records_.record_bytes())) {
    throw Error(ErrorKind::kCorrupt, "stored observations do not match the replay buffer");
  }
  records_.CopyIn(first, state.rows);
}

}  // namespace uper
