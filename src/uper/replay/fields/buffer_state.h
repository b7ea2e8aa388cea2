#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uper/base/files/byte_stream.h"
#include "uper/replay/fields/state_stream.h"
#include "uper/replay/replay_buffer.h"

namespace uper {

void SaveCounters(const ReplayCounters& counters, ByteWriter& writer);
void LoadCounters(ByteReader& reader, ReplayCounters& counters);

// A block that holds exactly this array. Throws Error(kCorrupt) if it has another length.
template <typename T>
void ReadArray(StateReader& in, std::string_view name, std::vector<T>& values) {
  if (in.Begin(name) != values.size() * sizeof(T)) {
    in.Fail("is of another memory: its " + std::string(name) + " do not fit");
  }
  in.Read(std::as_writable_bytes(std::span(values)));
  in.End();
}

// The blocks "buffer" and "priorities" of a saved memory: the state of its replay buffer.
void SaveBuffer(const ReplayBuffer& buffer, StateWriter& out);
// Throws Error(kCorrupt) if the state does not fit the buffer's options.
void LoadBuffer(StateReader& in, ReplayBuffer& buffer);

}  // namespace uper
