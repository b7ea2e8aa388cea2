#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/core/importance_weights.h"
#include "uper/replay/ring.h"
#include "uper/replay/selectors/make_selector.h"

namespace uper {

struct ReplayBufferOptions {
  std::size_t capacity = 1'000'000;  // items, in [1, 2^32)
  SelectorKind selector = SelectorKind::kProportional;
  SelectorOptions selection;
  double initial_priority = 1;        // the largest priority before one is set; > 0
  double largest_priority_decay = 1;  // factor on the largest at each SetPriorities; in (0, 1],
                                      // 1: the largest ever seen

  // Throws Error(kUsage) naming the field that is out of range.
  void Validate() const;
};

// Options of the importance weights; see core/importance_weights.h.
struct WeightOptions {
  double importance_exponent = 0;  // beta in [0, 1]
  WeightNormalization normalization = WeightNormalization::kBatchMax;
};

// The caller's memory for a sample, one entry per draw.
struct SampleView {
  std::span<std::uint64_t> ids;
  std::span<double> probabilities;
  std::span<float> weights;
};

// Counts of the entries of one SetPriorities call by result; their sum is the number of entries.
struct UpdateCounts {
  std::size_t updated = 0;
  std::size_t evicted = 0;  // the item is gone
  std::size_t invalid = 0;  // an invalid priority, or an id that was never used

  bool operator==(const UpdateCounts&) const = default;
};

// Since construction.
struct ReplayCounters {
  std::uint64_t added = 0;
  std::uint64_t evicted = 0;             // items, by newer ones or by EvictBefore
  std::uint64_t invalid_insertions = 0;  // refused priorities at Add
  std::uint64_t drawn = 0;
  std::uint64_t uniform_fallbacks = 0;  // uniform because no item had mass
  std::uint64_t updated = 0;            // the three of UpdateCounts
  std::uint64_t updates_of_evicted = 0;
  std::uint64_t invalid_updates = 0;

  bool operator==(const ReplayCounters&) const = default;
};

// The whole state except the options: a buffer with the same options and state continues bit for
// bit.
struct ReplayBufferState {
  std::uint64_t first_id = 0;
  std::uint64_t next_id = 0;
  SelectorState selector;
  double largest_priority = 0;
  std::uint64_t stream_position = 0;
  ReplayCounters counters;
};

// Joins ids and a selector: it decides which items are live and how likely each draw is. It has no
// data; storages keep the data by slot (transition_replay.h).
//
// Ids count up from 0 and are never reused; the live items are the contiguous range [first_id,
// next_id), at most `capacity` of them, the oldest leaving first. New items get the largest raw
// priority seen so far. O(log capacity) per item. Not thread-safe.
//
// A priority that is NaN, infinite, negative or too large for a float never enters. In Add() the
// item gets the largest priority instead; in SetPriorities() it keeps its own.
class ReplayBuffer {
 public:
  // Takes the random numbers of draws from `stream`.
  ReplayBuffer(const ReplayBufferOptions& options, RandomStream stream);

  std::size_t capacity() const { return selector_->capacity(); }
  std::size_t size() const { return selector_->size(); }
  std::uint64_t first_id() const { return next_id_ - size(); }
  std::uint64_t next_id() const { return next_id_; }
  bool Contains(std::uint64_t id) const { return id - first_id() < size(); }
  std::size_t SlotOf(std::uint64_t id) const { return ring().SlotOf(id); }

  // Both return the new item's id.
  std::uint64_t Add();
  std::uint64_t Add(double priority);
  // Adds several items at once, with the largest priority or with given ones, and returns the first
  // of their consecutive ids. The result is that of Add() for each. REQUIRES: at most `capacity`.
  std::uint64_t AddMany(std::size_t count);
  std::uint64_t AddMany(std::span<const double> priorities);
  // Removes all items with a smaller id.
  void EvictBefore(std::uint64_t id);

  // Draws one item for each entry of the view, with replacement. Probabilities are exact.
  // REQUIRES: size() > 0 and spans of equal length.
  void Sample(const WeightOptions& options, const SampleView& out);

  // Applies the entries in order, so the last valid one for an id wins. Ignores and counts entries
  // of evicted items and entries with an invalid priority.
  UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                             std::span<const double> priorities);

  // For draws that a device makes (SelectorKind::kMirror). DrawUniforms() takes the random numbers
  // that Sample() would take. CountDeviceDraws() adds the device's counts of draws and updates.
  // LoadDevicePriorities() takes the device's raw priorities, oldest first, and their largest.
  // REQUIRES: size() valid priorities.
  void DrawUniforms(std::span<double> uniforms) { selector_->DrawUniforms(stream_, uniforms); }
  void CountDeviceDraws(std::size_t drawn, std::size_t uniform_fallbacks,
                        const UpdateCounts& counts);
  void LoadDevicePriorities(std::vector<float> priorities, double largest_priority);

  // Re-derives all probabilities from the raw priorities, O(n).
  void SetPriorityExponent(double priority_exponent);

  // The raw priority, before the exponent. REQUIRES: Contains(id).
  double Priority(std::uint64_t id) const;
  // The probability that one draw gives the item. REQUIRES: Contains(id).
  double Probability(std::uint64_t id) const;
  // The raw priority that Add() would give now.
  double largest_priority() const { return largest_priority_; }
  const ReplayCounters& counters() const { return counters_; }

  ReplayBufferState GetState() const;
  // Throws Error(kCorrupt) and changes nothing if the state does not fit.
  void SetState(const ReplayBufferState& state);
  // Throws Error(kInternal) with the reason if an invariant is broken. O(n).
  void CheckValid() const;

 private:
  Ring ring() const { return {capacity()}; }
  std::uint64_t Append(float priority);
  std::uint64_t AppendStored();
  void NotePriority(float priority);
  void Count(const UpdateCounts& counts);

  double largest_priority_decay_;
  std::unique_ptr<Selector> selector_;
  RandomStream stream_;
  std::uint64_t next_id_ = 0;
  double largest_priority_;
  ReplayCounters counters_;

  // Reused between calls, so that steady work allocates nothing.
  std::vector<Draw> draws_;
  std::vector<std::uint32_t> slots_;
  std::vector<float> priorities_;
};

}  // namespace uper
