#include "uper/replay/fields/buffer_state.h"

#include <cstring>
#include <vector>

namespace uper {
namespace {

constexpr std::uint64_t kMostNumberBytes = 1024;

}  // namespace

void SaveCounters(const ReplayCounters& counters, ByteWriter& writer) {
  for (const std::uint64_t number : {counters.added, counters.evicted, counters.invalid_insertions,
                                     counters.drawn, counters.uniform_fallbacks, counters.updated,
                                     counters.updates_of_evicted, counters.invalid_updates}) {
    writer.Write(number);
  }
}

void LoadCounters(ByteReader& reader, ReplayCounters& counters) {
  for (std::uint64_t* number : {&counters.added, &counters.evicted, &counters.invalid_insertions,
                                &counters.drawn, &counters.uniform_fallbacks, &counters.updated,
                                &counters.updates_of_evicted, &counters.invalid_updates}) {
    *number = reader.Read<std::uint64_t>();
  }
}

void SaveBuffer(const ReplayBuffer& buffer, StateWriter& out) {
  const ReplayBufferState state = buffer.GetState();
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.Write(state.first_id);
  writer.Write(state.next_id);
  writer.Write(std::uint64_t{state.selector.capacity});
  writer.Write(std::uint64_t{state.selector.first_slot});
  writer.Write(state.selector.priority_exponent);
  writer.Write(state.largest_priority);
  writer.Write(state.stream_position);
  SaveCounters(state.counters, writer);
  out.Block("buffer", bytes);
  out.Block("priorities", std::as_bytes(std::span(state.selector.priorities)));
}

void LoadBuffer(StateReader& in, ReplayBuffer& buffer) {
  const std::vector<std::byte> bytes = in.Block("buffer", kMostNumberBytes);
  ByteReader reader(bytes);
  ReplayBufferState state;
  state.first_id = reader.Read<std::uint64_t>();
  state.next_id = reader.Read<std::uint64_t>();
  state.selector.capacity = reader.Read<std::uint64_t>();
  state.selector.first_slot = reader.Read<std::uint64_t>();
  state.selector.priority_exponent = reader.ReadInRange(0.0, 4.0);
  state.largest_priority = reader.Read<double>();
  state.stream_position = reader.Read<std::uint64_t>();
  LoadCounters(reader, state.counters);
  reader.ExpectEnd();
  const std::vector<std::byte> priorities =
      in.Block("priorities", buffer.capacity() * sizeof(float));
  if (priorities.size() % sizeof(float) != 0) in.Fail("is damaged: half a priority");
  state.selector.priorities.resize(priorities.size() / sizeof(float));
  if (!priorities.empty()) {
    std::memcpy(state.selector.priorities.data(), priorities.data(), priorities.size());
  }
  buffer.SetState(state);
}

}  // namespace uper
