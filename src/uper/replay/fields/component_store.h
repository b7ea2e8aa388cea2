#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/core/priority.h"
#include "uper/replay/fields/state_stream.h"
#include "uper/replay/replay_buffer.h"

namespace uper {

// The statistics from which a priority was computed. NaN: not known.
struct Components {
  float epistemic;
  float aleatoric;
  float target_distance_sq;
  float epistemic_delta;
  float td_error;
};

// The components behind the priorities of a replay buffer, by id. With them the priorities can be
// derived anew when the rule changes. Memory: 20 bytes per item. Not thread-safe.
class ComponentStore {
 public:
  explicit ComponentStore(std::size_t capacity);

  // A new item has no components.
  void Clear(std::uint64_t id);
  // NaN everywhere if there are none. REQUIRES: a live id.
  const Components& Get(std::uint64_t id) const { return rows_[id % rows_.size()]; }

  // Sets components of live items, and their priorities by the rule. Entries of items that are gone
  // change nothing. A priority that is not valid is refused, but its components are kept.
  UpdateCounts Set(ReplayBuffer& buffer, std::span<const std::uint64_t> ids,
                   std::span<const Components> components, PriorityRule rule,
                   const PriorityLimits& limits);
  // Derives the priorities of all items that have components. The others keep theirs.
  UpdateCounts Derive(ReplayBuffer& buffer, PriorityRule rule, const PriorityLimits& limits) const;

  void Save(const ReplayBuffer& buffer, StateWriter& out) const;
  void Load(const ReplayBuffer& buffer, StateReader& in);

 private:
  std::vector<Components> rows_;  // [id % capacity]
};

// The priority of these components by a rule.
double PriorityOf(const Components& components, PriorityRule rule, const PriorityLimits& limits);

}  // namespace uper
