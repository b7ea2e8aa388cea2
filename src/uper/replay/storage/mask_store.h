#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/arithmetic.h"
#include "uper/base/random.h"
#include "uper/replay/ring.h"

namespace uper {

struct MaskStoreOptions {
  std::size_t members = 1;  // of the ensemble, 1..64
  double probability = 1;   // that a member learns from a transition, in [0, 1]

  // Throws Error(kUsage) naming the field that is out of range.
  void Validate() const;
};

struct MaskStoreState {
  std::uint64_t first_id = 0;
  std::vector<std::uint8_t> rows;  // packed masks in order of ids
  std::uint64_t stream_position = 0;
};

// Bootstrap masks: they decide which ensemble members learn from which transition. Bit k of a mask
// is member k, Bernoulli(probability) (to 2^-32), drawn once at insertion from the masks' own
// stream. Every mask takes exactly `members` words of the stream, so it depends on seed and id
// alone if every id gets one. Packed into ceil(members / 8) bytes. O(members) per mask. Not
// thread-safe.
class MaskStore {
 public:
  MaskStore(std::size_t capacity, const MaskStoreOptions& options, RandomStream stream);

  std::size_t members() const { return options_.members; }
  std::size_t bytes_per_mask() const { return CeilDiv<std::size_t>(options_.members, 8); }

  // Draws the mask of a new id into its slot of the ring.
  void Draw(std::uint64_t id);
  std::uint64_t Get(std::uint64_t id) const;

  // The state of the ids in [first, next), at most `capacity` of them.
  MaskStoreState GetState(std::uint64_t first, std::uint64_t next) const;
  // Throws Error(kCorrupt) and changes nothing if the rows are not those of [first, next).
  void SetState(const MaskStoreState& state, std::uint64_t first, std::uint64_t next);
  // Throws Error(kInternal) if a mask has bits beyond the last member. O(capacity).
  void CheckValid() const;

  static std::size_t MemoryBytes(std::size_t capacity, const MaskStoreOptions& options) {
    return capacity * CeilDiv<std::size_t>(options.members, 8);
  }

 private:
  std::size_t OffsetOf(std::uint64_t id) const { return ring_.SlotOf(id) * bytes_per_mask(); }

  MaskStoreOptions options_;
  Ring ring_;
  std::uint64_t threshold_;  // a word below it gives a 1
  RandomStream stream_;
  std::vector<std::uint8_t> bytes_;  // little-endian masks by slot
};

}  // namespace uper
