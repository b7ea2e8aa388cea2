#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "uper/replay/fields/state_stream.h"
#include "uper/replay/replay_buffer.h"

namespace uper {

// Priorities for a memory that fills its slots in an order of its own. An item is put into a slot
// and leaves it when another is put there, or when it is dropped. Its id is unique for ever, and
// id % capacity is its slot. Draws, weights and refusals are those of ReplayBuffer with the
// proportional selector. O(log capacity) per item. Not thread-safe.
class SlotIndex {
 public:
  // Throws Error(kUsage) if an option is out of range. The selector must be proportional.
  SlotIndex(const ReplayBufferOptions& options, RandomStream stream);

  std::size_t capacity() const { return next_ids_.size(); }
  std::size_t size() const { return filled_.size(); }
  bool Contains(std::uint64_t id) const;
  double largest_priority() const { return largest_priority_; }
  const ReplayCounters& counters() const { return counters_; }

  // Puts an item with the largest priority into each slot, in order, and writes their ids. An item
  // that is there leaves. Empty priorities: each gets the largest. Throws Error(kUsage) and changes
  // nothing if a slot is out of range.
  void Put(std::span<const std::uint64_t> slots, std::span<const double> priorities,
           std::span<std::uint64_t> ids);
  // Empties the slots. Throws Error(kUsage) and changes nothing if one is out of range.
  void Drop(std::span<const std::uint64_t> slots);

  // As ReplayBuffer.
  void Sample(const WeightOptions& options, const SampleView& out);
  UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                             std::span<const double> priorities);
  void SetPriorityExponent(double priority_exponent);
  double Priority(std::uint64_t id) const;
  double Probability(std::uint64_t id) const;

  void Save(StateWriter& out) const;
  // Throws Error(kCorrupt) if the state does not fit; the index is then not to be used further.
  void Load(StateReader& in);
  void CheckValid() const;

 private:
  bool IsFilled(std::size_t slot) const { return places_[slot] != kNoPlace; }
  void CheckSlots(std::span<const std::uint64_t> slots) const;
  void Fill(std::size_t slot);
  void Empty(std::size_t slot);
  void SetOne(std::size_t slot, float priority);
  double Mixed(double by_mass) const;

  static constexpr std::uint32_t kNoPlace = 0xFFFFFFFFU;

  double uniform_mix_;
  double largest_priority_decay_;
  double largest_priority_;
  std::unique_ptr<Selector> selector_;  // all slots, without uniform draws; empty ones have mass 0
  RandomStream stream_;
  std::vector<std::uint64_t> next_ids_;  // [slot]: of the next item; the present one's is smaller
  std::vector<std::uint32_t> filled_;    // slots in use, in any order
  std::vector<std::uint32_t> places_;    // [slot]: where it is in filled_
  ReplayCounters counters_;

  // Reused between calls.
  std::vector<double> uniforms_;
  std::vector<Draw> draws_;
  std::vector<std::uint32_t> slots_;
  std::vector<float> priorities_;
};

}  // namespace uper
