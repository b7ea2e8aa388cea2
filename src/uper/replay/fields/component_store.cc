#include "uper/replay/fields/component_store.h"

#include <cmath>
#include <limits>

#include "uper/base/check.h"

namespace uper {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr Components kNothing{kNone, kNone, kNone, kNone, kNone};

bool HasAny(const Components& c) {
  return !std::isnan(c.epistemic) || !std::isnan(c.aleatoric) || !std::isnan(c.epistemic_delta) ||
         !std::isnan(c.td_error);
}

}  // namespace

double PriorityOf(const Components& c, PriorityRule rule, const PriorityLimits& limits) {
  const double epistemic = c.epistemic, aleatoric = c.aleatoric, delta = c.epistemic_delta;
  const PriorityInputs inputs{.uncertainty = {.epistemic = epistemic,
                                              .aleatoric = aleatoric,
                                              .target_distance_sq = c.target_distance_sq,
                                              .epistemic_delta = delta,
                                              .total = epistemic + aleatoric,
                                              .total_delta = delta + aleatoric},
                              .td_error = c.td_error};
  return ComputePriority(rule, inputs, limits).value;
}

ComponentStore::ComponentStore(std::size_t capacity) : rows_(capacity, kNothing) {}

void ComponentStore::Clear(std::uint64_t id) { rows_[id % rows_.size()] = kNothing; }

UpdateCounts ComponentStore::Set(ReplayBuffer& buffer, std::span<const std::uint64_t> ids,
                                 std::span<const Components> components, PriorityRule rule,
                                 const PriorityLimits& limits) {
  UPER_CHECK(ids.size() == components.size(), "components of each id");
  std::vector<double> priorities;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (buffer.Contains(ids[i])) rows_[ids[i] % rows_.size()] = components[i];
    priorities.push_back(PriorityOf(components[i], rule, limits));
  }
  return buffer.SetPriorities(ids, priorities);
}

UpdateCounts ComponentStore::Derive(ReplayBuffer& buffer, PriorityRule rule,
                                    const PriorityLimits& limits) const {
  std::vector<std::uint64_t> ids;
  std::vector<double> priorities;
  for (std::uint64_t id = buffer.first_id(); id < buffer.next_id(); ++id) {
    if (!HasAny(Get(id))) continue;
    ids.push_back(id);
    priorities.push_back(PriorityOf(Get(id), rule, limits));
  }
  return buffer.SetPriorities(ids, priorities);
}

void ComponentStore::Save(const ReplayBuffer& buffer, StateWriter& out) const {
  out.Begin("components", buffer.size() * sizeof(Components));
  for (std::uint64_t id = buffer.first_id(); id < buffer.next_id(); ++id) {
    out.Append(std::as_bytes(std::span(&Get(id), 1)));
  }
  out.End();
}

void ComponentStore::Load(const ReplayBuffer& buffer, StateReader& in) {
  if (in.Begin("components") != buffer.size() * sizeof(Components)) {
    in.Fail("is of another memory: its components do not fit");
  }
  for (std::uint64_t id = buffer.first_id(); id < buffer.next_id(); ++id) {
    in.Read(std::as_writable_bytes(std::span(&rows_[id % rows_.size()], 1)));
  }
  in.End();
}

}  // namespace uper
