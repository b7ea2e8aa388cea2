#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/replay/storage/byte_ring.h"

namespace uper {

struct WholeObservationsState {
  std::uint64_t first_id = 0;
  std::vector<std::byte> rows;  // s_tm1 and s_t of each id, in order of ids
  bool already_loaded = false;  // RestoreRows() loaded them; `rows` is empty
};

// Observations of transitions as plain bytes; it stores both s_tm1 and s_t whole, which suits
// vectors and small images. One of the two `Observations` of TransitionReplay (the other is
// FrameStore). Not thread-safe.
class WholeObservations {
 public:
  using Observation = std::span<const std::byte>;
  using State = WholeObservationsState;

  // REQUIRES: capacity >= 1, observation_bytes >= 1.
  WholeObservations(std::size_t capacity, std::size_t observation_bytes);

  std::size_t capacity() const { return records_.capacity(); }
  std::size_t observation_bytes() const { return records_.record_bytes() / 2; }
  // Ids below this one were lost for a reason other than the ring's size: none here.
  std::uint64_t first_valid_id() const { return 0; }

  // Throws and changes nothing if a size is wrong.
  void Put(std::uint64_t id, Observation s_tm1, Observation s_t);
  // REQUIRES: both outputs have observation_bytes().
  void Gather(std::uint64_t id, std::span<std::byte> s_tm1, std::span<std::byte> s_t) const;

  // The state of the ids in [first, next).
  State GetState(std::uint64_t first, std::uint64_t next) const;
  // Restores the rows of ids first, first + 1, ... without a second copy of all. Call it piece by
  // piece for all rows, then SetState() with a state that is `already_loaded`. REQUIRES: whole
  // rows.
  void RestoreRows(std::uint64_t first, std::span<const std::byte> rows) {
    records_.CopyIn(first, rows);
  }
  // Throws Error(kCorrupt) and changes nothing if the rows are not those of [first, next).
  void SetState(const State& state, std::uint64_t first, std::uint64_t next);
  void CheckValid() const {}

 private:
  ByteRing records_;
};

}  // namespace uper
