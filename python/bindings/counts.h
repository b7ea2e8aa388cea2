#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "field_arrays.h"
#include "object_lock.h"
#include "uper/replay/replay_buffer.h"

namespace uper::python {

// Limit of the description that Python writes at the beginning of a saved memory.
inline constexpr std::uint64_t kMostLayoutBytes = std::uint64_t{1} << 20;

// (updated, evicted, invalid).
using Counts = std::tuple<std::size_t, std::size_t, std::size_t>;

// The options of a replay buffer from a dict of all of them.
ReplayBufferOptions BufferOptionsFrom(const nanobind::dict& options);

// The verdicts; nothing if the arrays need a conversion first.
template <typename Index>
std::optional<Counts> SetPrioritiesOf(Index& index, ObjectLock& lock, const nanobind::object& ids,
                                      const nanobind::object& priorities) {
  const std::optional<ArrayView> which = ExactArray(ids, "L", "Q");
  const std::optional<ArrayView> values = ExactArray(priorities, "d", "d");
  if (!which || !values) return std::nullopt;
  const auto id_values = which->values<const std::uint64_t>();
  const auto priority_values = values->values<const double>();
  if (id_values.size() != priority_values.size()) {
    throw Error(ErrorKind::kUsage, "there are " + std::to_string(id_values.size()) + " ids and " +
                                       std::to_string(priority_values.size()) + " priorities");
  }
  const ObjectLock::Guard guard(lock);
  const UpdateCounts counts = index.SetPriorities(id_values, priority_values);
  return Counts{counts.updated, counts.evicted, counts.invalid};
}

// The methods that a memory and an index have in common: `index(self)` is a ReplayBuffer or a
// SlotIndex, and self.lock() guards it.
template <typename Self, typename GetIndex>
void BindIndexParts(nanobind::class_<Self>& type, GetIndex index) {
  namespace nb = nanobind;
  type.def_prop_ro("largest_priority",
                   [=](Self& self) {
                     const ObjectLock::Guard guard(self.lock());
                     return index(self).largest_priority();
                   })
      .def("counters",
           [=](Self& self) {
             const ObjectLock::Guard guard(self.lock());
             const ReplayCounters c = index(self).counters();
             return nb::make_tuple(c.added, c.evicted, c.invalid_insertions, c.drawn,
                                   c.uniform_fallbacks, c.updated, c.updates_of_evicted,
                                   c.invalid_updates);
           })
      .def("set_priority_exponent",
           [=](Self& self, double exponent) {
             const ObjectLock::Guard guard(self.lock());
             index(self).SetPriorityExponent(exponent);
           })
      // Into `out`, a float64 array; all ids must be live.
      .def("read",
           [=](Self& self, const nb::object& ids, const nb::object& out, bool probabilities) {
             const std::optional<ArrayView> which = ExactArray(ids, "L", "Q");
             if (!which) throw Error(ErrorKind::kUsage, "ids must be whole numbers");
             const auto values = which->template values<const std::uint64_t>();
             const ArrayView to(out, values.size() * sizeof(double), true, "out");
             const ObjectLock::Guard guard(self.lock());
             for (const std::uint64_t id : values) self.CheckLive(id);
             for (std::size_t i = 0; i < values.size(); ++i) {
               to.template values<double>()[i] = probabilities ? index(self).Probability(values[i])
                                                               : index(self).Priority(values[i]);
             }
           });
}

// The same for a ring of ids.
template <typename Self, typename GetBuffer>
void BindBufferParts(nanobind::class_<Self>& type, GetBuffer buffer) {
  BindIndexParts(type, buffer);
  type.def_prop_ro("first_id",
                   [=](Self& self) {
                     const ObjectLock::Guard guard(self.lock());
                     return buffer(self).first_id();
                   })
      .def_prop_ro("next_id",
                   [=](Self& self) {
                     const ObjectLock::Guard guard(self.lock());
                     return buffer(self).next_id();
                   })
      .def("evict_before", [=](Self& self, std::uint64_t id) {
        const ObjectLock::Guard guard(self.lock());
        buffer(self).EvictBefore(id);
      });
}

}  // namespace uper::python
