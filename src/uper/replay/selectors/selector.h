#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/random.h"

namespace uper {

struct SelectorOptions {
  double priority_exponent = 0.6;  // alpha in [0, 4]; 0: every item of positive priority alike
  double uniform_mix = 1e-3;       // share of uniform draws, in [0, 1]
  bool stratified = false;         // one draw in each of `batch` equal parts of [0, 1)
  // Age as a factor of the mass: it halves with so many newer items. 0: age does not count. For the
  // proportional selector.
  double recency_half_life = 0;

  // Throws Error(kUsage) naming the field that is out of range.
  void Validate() const;
};

// One draw: a slot and its exact probability at that moment.
struct Draw {
  std::uint32_t slot = 0;
  double probability = 0;
};

// The state with which a selector draws the same again.
struct SelectorState {
  std::size_t capacity = 0;
  std::size_t first_slot = 0;     // of the oldest item
  std::vector<float> priorities;  // oldest first
  double priority_exponent = 0;
  std::uint64_t appended = 0;  // items ever; only their ages depend on it
};

// Chooses slots by priority and does not access the data in them. The filled slots are a ring: a
// new item follows the newest (and replaces the oldest when all slots are filled), and removal
// takes the oldest. Each item has a raw priority. The subclass turns it into a *mass*, which gives
// the probability:
//   P(i) = (1 - uniform_mix) * mass_i / sum of masses + uniform_mix / size.
// An item of priority 0 has mass 0 for every exponent. When no item has mass all draws are uniform.
//
// One number u in [0, 1) decides one draw: u < uniform_mix picks uniformly by u / uniform_mix, the
// rest by mass at (u - uniform_mix) / (1 - uniform_mix).
//
// Costs are O(log capacity) per item unless noted. All arrays have their full size from
// construction on. Not thread-safe. A subclass implements only the masses (the protected part);
// ring, mixing and probabilities exist once, here.
class Selector {
 public:
  virtual ~Selector() = default;
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;

  std::size_t capacity() const { return priorities_.size(); }
  std::size_t size() const { return size_; }
  std::size_t first_slot() const { return first_slot_; }
  // Items ever appended. The newest item is number appended() - 1.
  std::uint64_t appended() const { return appended_; }
  float priority(std::size_t slot) const { return priorities_[slot]; }
  std::size_t positive_count() const { return positive_count_; }
  bool HasMass() const { return TotalMass() > 0; }
  const SelectorOptions& options() const { return options_; }

  // All priorities must satisfy IsStoredPriority(); otherwise the whole batch is refused.

  // Adds an item after the newest; a full ring replaces the oldest. Returns its slot.
  std::uint32_t Append(float priority);
  // The same as Append() for each, in order. REQUIRES: at most `capacity` of them.
  void AppendMany(std::span<const float> priorities);
  // REQUIRES: count <= size().
  void RemoveOldest(std::size_t count);
  // If a slot occurs twice, the last entry wins. REQUIRES: filled slots.
  void SetPriorities(std::span<const std::uint32_t> slots, std::span<const float> priorities);
  // Re-derives all masses, O(n): the same as a selector made with that exponent.
  void SetExponent(double priority_exponent);

  // Draws with replacement, one random number per draw; stratified if the options say so. Returns
  // the number of draws that were uniform because no item had mass. REQUIRES: size() > 0.
  std::size_t Sample(RandomStream& stream, std::span<Draw> draws);
  // The two parts of Sample(): its random numbers, and the draws with given numbers in [0, 1).
  void DrawUniforms(RandomStream& stream, std::span<double> uniforms) const;
  std::size_t SampleAt(std::span<const double> uniforms, std::span<Draw> draws) const;

  // REQUIRES: a filled slot.
  double Probability(std::size_t slot) const;
  // Smallest positive probability of any item, O(1); a subclass may need O(n) at the first call and
  // some time in every later update. REQUIRES: size() > 0.
  double SmallestProbability();

  SelectorState GetState() const;
  // Throws Error(kCorrupt) and changes nothing if the state does not fit.
  void SetState(const SelectorState& state);
  // Throws Error(kInternal) with the reason if an invariant is broken. O(n log n).
  void CheckValid() const;

 protected:
  Selector(std::size_t capacity, const SelectorOptions& options);

  // Stores the priorities in order through ExchangePriority() and updates the masses.
  virtual void Update(std::span<const std::uint32_t> slots, std::span<const float> priorities) = 0;
  // Derives all masses afresh from priority() and the exponent.
  virtual void Rebuild() = 0;
  virtual double TotalMass() const = 0;
  virtual double Mass(std::size_t slot) const = 0;
  // The slots at these fractions (in [0, 1], 1 by rounding only) of the total mass, with their
  // masses, all positive. Called with TotalMass() > 0 only.
  virtual void Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
                    std::span<double> masses) const = 0;
  // Smallest positive mass. Called with TotalMass() > 0 only.
  virtual double SmallestMass() = 0;
  virtual void CheckMasses() const = 0;

  // Called after items were appended, before their priorities are stored. Returns whether all
  // masses must be derived afresh.
  virtual bool AgesChanged() { return false; }
  // How many items were appended before the one in this slot. REQUIRES: a filled slot.
  std::uint64_t NumberOf(std::size_t slot) const;
  // Sets the raw priority and returns the former one.
  float ExchangePriority(std::size_t slot, float priority);
  double exponent() const { return options_.priority_exponent; }
  void PrefetchPriority(std::size_t slot) const { __builtin_prefetch(&priorities_[slot], 1); }

 private:
  void StoreAppended(std::span<const std::uint32_t> slots, std::span<const float> priorities);
  void SampleChunk(std::span<const double> uniforms, std::span<Draw> draws) const;
  std::uint32_t UniformSlot(double fraction) const;
  std::size_t SlotAt(std::size_t age_rank) const;
  double Mixed(double mass, double total) const;
  bool IsFilled(std::size_t slot) const;

  SelectorOptions options_;
  std::vector<float> priorities_;  // by slot; 0 where nothing is stored
  std::size_t first_slot_ = 0;
  std::size_t size_ = 0;
  std::size_t positive_count_ = 0;  // items of positive priority
  std::uint64_t appended_ = 0;
  std::vector<double> uniforms_;  // of the batch being drawn
  std::vector<std::uint32_t> appended_slots_;
};

}  // namespace uper
