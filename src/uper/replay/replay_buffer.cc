#include "uper/replay/replay_buffer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "uper/base/check.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper {
void ReplayBufferOptions::Validate() const {
  selection.Validate();
  if (capacity < 1 || capacity > 0xFFFFFFFFU) {
    throw Error(ErrorKind::kUsage,
                "capacity must lie in [1, 2^32), not " + std::to_string(capacity));
  }
  if (AcceptPriority(initial_priority).value_or(0) == 0) {
    throw Error(ErrorKind::kUsage, "initial_priority must be positive and finite, not " +
                                       std::to_string(initial_priority));
  }
  if (!(largest_priority_decay > 0 && largest_priority_decay <= 1)) {
    throw Error(ErrorKind::kUsage, "largest_priority_decay must lie in (0, 1], not " +
                                       std::to_string(largest_priority_decay));
  }
  if (selection.recency_half_life > 0 && selector != SelectorKind::kProportional) {
    throw Error(ErrorKind::kUsage, "recency_half_life needs the proportional selector");
  }
}

ReplayBuffer::ReplayBuffer(const ReplayBufferOptions& options, RandomStream stream)
    : largest_priority_decay_(options.largest_priority_decay),
      stream_(stream),
      largest_priority_(AcceptPriority(options.initial_priority).value_or(0)) {
  options.Validate();
  selector_ = MakeSelector(options.selector, options.capacity, options.selection);
}

std::uint64_t ReplayBuffer::Append(float priority) {
  if (size() == capacity()) ++counters_.evicted;
  selector_->Append(priority);
  ++counters_.added;
  return next_id_++;
}

std::uint64_t ReplayBuffer::Add() { return Append(static_cast<float>(largest_priority_)); }

std::uint64_t ReplayBuffer::Add(double priority) {
  const std::optional<float> stored = AcceptPriority(priority);
  if (!stored) {
    ++counters_.invalid_insertions;
    return Add();
  }
  NotePriority(*stored);
  return Append(*stored);
}

std::uint64_t ReplayBuffer::AddMany(std::size_t count) {
  priorities_.assign(count, static_cast<float>(largest_priority_));
  return AppendStored();
}

std::uint64_t ReplayBuffer::AddMany(std::span<const double> priorities) {
  priorities_.clear();
  for (const double priority : priorities) {
    const std::optional<float> stored = AcceptPriority(priority);
    if (stored) {
      NotePriority(*stored);
    } else {
      ++counters_.invalid_insertions;
    }
    priorities_.push_back(stored.value_or(static_cast<float>(largest_priority_)));
  }
  return AppendStored();
}

// Appends priorities_.
std::uint64_t ReplayBuffer::AppendStored() {
  const std::size_t count = priorities_.size();
  const std::size_t before = size();
  selector_->AppendMany(priorities_);
  counters_.added += count;
  counters_.evicted += before + count - size();
  next_id_ += count;
  return next_id_ - count;
}

void ReplayBuffer::EvictBefore(std::uint64_t id) {
  if (id <= first_id()) return;
  const std::size_t count = std::min<std::uint64_t>(id - first_id(), size());
  selector_->RemoveOldest(count);
  counters_.evicted += count;
}

void ReplayBuffer::Sample(const WeightOptions& options, const SampleView& out) {
  const std::size_t count = out.ids.size();
  UPER_CHECK(out.probabilities.size() == count && out.weights.size() == count,
             "the parts of a sample must be equally long");
  draws_.resize(count);
  counters_.uniform_fallbacks += selector_->Sample(stream_, draws_);
  counters_.drawn += count;
  const std::size_t first_slot = selector_->first_slot();
  for (std::size_t j = 0; j < count; ++j) {
    out.ids[j] = first_id() + ring().RankOf(first_slot, draws_[j].slot);
    out.probabilities[j] = draws_[j].probability;
  }
  const bool needs_smallest = options.normalization == WeightNormalization::kBufferMax;
  ImportanceWeights(out.probabilities, static_cast<double>(size()), options.importance_exponent,
                    options.normalization, needs_smallest ? selector_->SmallestProbability() : 1,
                    out.weights);
}

UpdateCounts ReplayBuffer::SetPriorities(std::span<const std::uint64_t> ids,
                                         std::span<const double> priorities) {
  UPER_CHECK(ids.size() == priorities.size(), "one priority an id");
  slots_.clear();
  priorities_.clear();
  UpdateCounts counts;
  const std::uint64_t first = first_id();
  const std::size_t first_slot = selector_->first_slot();
  largest_priority_ = DecayedLargest(largest_priority_, largest_priority_decay_);
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const std::optional<float> stored = AcceptPriority(priorities[j]);
    if (ids[j] < first) {
      ++counts.evicted;
    } else if (ids[j] >= next_id_ || !stored) {
      ++counts.invalid;
    } else {
      const std::size_t slot = ring().SlotAt(first_slot, ids[j] - first);
      slots_.push_back(static_cast<std::uint32_t>(slot));
      priorities_.push_back(*stored);
      NotePriority(*stored);
    }
  }
  selector_->SetPriorities(slots_, priorities_);
  counts.updated = slots_.size();
  Count(counts);
  return counts;
}

void ReplayBuffer::Count(const UpdateCounts& counts) {
  counters_.updated += counts.updated;
  counters_.updates_of_evicted += counts.evicted;
  counters_.invalid_updates += counts.invalid;
}

void ReplayBuffer::CountDeviceDraws(std::size_t drawn, std::size_t uniform_fallbacks,
                                    const UpdateCounts& counts) {
  counters_.drawn += drawn;
  counters_.uniform_fallbacks += uniform_fallbacks;
  Count(counts);
}

void ReplayBuffer::LoadDevicePriorities(std::vector<float> priorities, double largest_priority) {
  ReplayBufferState state = GetState();
  UPER_CHECK(priorities.size() == size(), "one priority an item");
  state.selector.priorities = std::move(priorities);
  state.largest_priority = largest_priority;
  SetState(state);
}

void ReplayBuffer::SetPriorityExponent(double priority_exponent) {
  selector_->SetExponent(priority_exponent);
}

double ReplayBuffer::Priority(std::uint64_t id) const {
  UPER_CHECK(Contains(id), "no such item");
  return selector_->priority(SlotOf(id));
}

double ReplayBuffer::Probability(std::uint64_t id) const {
  UPER_CHECK(Contains(id), "no such item");
  return selector_->Probability(SlotOf(id));
}

void ReplayBuffer::NotePriority(float priority) {
  largest_priority_ = std::max(largest_priority_, double{priority});
}

ReplayBufferState ReplayBuffer::GetState() const {
  return {.first_id = first_id(),
          .next_id = next_id_,
          .selector = selector_->GetState(),
          .largest_priority = largest_priority_,
          .stream_position = stream_.position(),
          .counters = counters_};
}

void ReplayBuffer::SetState(const ReplayBufferState& state) {
  const std::uint64_t items = state.selector.priorities.size();
  if (state.next_id < items || state.first_id != state.next_id - items ||
      state.selector.first_slot != SlotOf(state.first_id) ||
      AcceptPriority(state.largest_priority).value_or(0) == 0) {
    throw Error(ErrorKind::kCorrupt, "replay buffer state contradicts itself");
  }
  SelectorState selector = state.selector;
  selector.appended = state.next_id;
  selector_->SetState(selector);
  next_id_ = state.next_id;
  largest_priority_ = state.largest_priority;
  stream_.set_position(state.stream_position);
  counters_ = state.counters;
}

void ReplayBuffer::CheckValid() const {
  selector_->CheckValid();
  UPER_CHECK(next_id_ >= size(), "more items than ids");
  UPER_CHECK(selector_->first_slot() == SlotOf(first_id()), "ids and slots are out of step");
  UPER_CHECK(counters_.added - counters_.evicted == size(), "items are not accounted for");
  UPER_CHECK(AcceptPriority(largest_priority_).value_or(0) > 0, "bad largest priority");
}

}  // namespace uper
