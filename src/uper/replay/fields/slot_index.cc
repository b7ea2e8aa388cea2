#include "uper/replay/fields/slot_index.h"

#include <algorithm>
#include <string>

#include "uper/base/check.h"
#include "uper/replay/fields/buffer_state.h"
#include "uper/replay/selectors/selection_math.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper {
namespace {

ReplayBufferOptions Checked(const ReplayBufferOptions& options) {
  options.Validate();
  if (options.selector != SelectorKind::kProportional) {
    throw Error(ErrorKind::kUsage, "an index by slot draws by the proportional selector only");
  }
  if (options.selection.recency_half_life > 0) {
    throw Error(ErrorKind::kUsage, "an index by slot knows no ages: recency_half_life must be 0");
  }
  return options;
}

SelectorOptions WithoutMix(SelectorOptions options) {
  options.uniform_mix = 0;
  return options;
}

}  // namespace

SlotIndex::SlotIndex(const ReplayBufferOptions& options, RandomStream stream)
    : uniform_mix_(Checked(options).selection.uniform_mix),
      largest_priority_decay_(options.largest_priority_decay),
      largest_priority_(*AcceptPriority(options.initial_priority)),
      selector_(MakeSelector(SelectorKind::kProportional, options.capacity,
                             WithoutMix(options.selection))),
      stream_(stream),
      places_(options.capacity, kNoPlace) {
  selector_->AppendMany(std::vector<float>(options.capacity, 0.0F));
  next_ids_.resize(options.capacity);
  for (std::size_t slot = 0; slot < options.capacity; ++slot) next_ids_[slot] = slot;
  filled_.reserve(options.capacity);
}

bool SlotIndex::Contains(std::uint64_t id) const {
  const std::size_t slot = id % capacity();
  return IsFilled(slot) && id + capacity() == next_ids_[slot];
}

void SlotIndex::CheckSlots(std::span<const std::uint64_t> slots) const {
  for (const std::uint64_t slot : slots) {
    if (slot < capacity()) continue;
    throw Error(ErrorKind::kUsage, "slot " + std::to_string(slot) + " is out of range: there are " +
                                       std::to_string(capacity()));
  }
}

void SlotIndex::Fill(std::size_t slot) {
  if (IsFilled(slot)) {
    ++counters_.evicted;
  } else {
    places_[slot] = static_cast<std::uint32_t>(filled_.size());
    filled_.push_back(static_cast<std::uint32_t>(slot));
  }
  next_ids_[slot] += capacity();
  ++counters_.added;
}

void SlotIndex::Empty(std::size_t slot) {
  const std::uint32_t place = places_[slot];
  filled_[place] = filled_.back();
  places_[filled_[place]] = place;
  filled_.pop_back();
  places_[slot] = kNoPlace;
  ++counters_.evicted;
}

void SlotIndex::Put(std::span<const std::uint64_t> slots, std::span<const double> priorities,
                    std::span<std::uint64_t> ids) {
  UPER_CHECK(ids.size() == slots.size(), "one id per slot");
  UPER_CHECK(priorities.empty() || priorities.size() == slots.size(), "one priority per slot");
  CheckSlots(slots);
  slots_.clear();
  priorities_.clear();
  for (std::size_t j = 0; j < slots.size(); ++j) {
    std::optional<float> stored;
    if (!priorities.empty()) {
      stored = AcceptPriority(priorities[j]);
      counters_.invalid_insertions += stored ? 0 : 1;
      largest_priority_ = std::max(largest_priority_, double{stored.value_or(0)});
    }
    ids[j] = next_ids_[slots[j]];
    Fill(slots[j]);
    slots_.push_back(static_cast<std::uint32_t>(slots[j]));
    priorities_.push_back(stored.value_or(static_cast<float>(largest_priority_)));
  }
  selector_->SetPriorities(slots_, priorities_);
}

void SlotIndex::Drop(std::span<const std::uint64_t> slots) {
  CheckSlots(slots);
  slots_.clear();
  for (const std::uint64_t slot : slots) {
    if (!IsFilled(slot)) continue;
    Empty(slot);
    slots_.push_back(static_cast<std::uint32_t>(slot));
  }
  priorities_.assign(slots_.size(), 0.0F);
  selector_->SetPriorities(slots_, priorities_);
}

double SlotIndex::Mixed(double by_mass) const {
  return MixedProbability(by_mass, 1, uniform_mix_, size());
}

void SlotIndex::Sample(const WeightOptions& options, const SampleView& out) {
  const std::size_t count = out.ids.size();
  UPER_CHECK(out.probabilities.size() == count && out.weights.size() == count,
             "the parts of a sample must be equally long");
  UPER_CHECK(size() > 0, "nothing to draw from");
  uniforms_.resize(count);
  draws_.resize(count);
  selector_->DrawUniforms(stream_, uniforms_);
  const bool has_mass = selector_->HasMass();
  const double mix = has_mass ? uniform_mix_ : 1;
  slots_.clear();  // of the draws by mass: their places in the batch
  std::size_t searches = 0;
  for (std::size_t j = 0; j < count; ++j) {
    const double u = uniforms_[j];
    if (u < mix) {
      const std::uint32_t slot = filled_[UniformRank(u / mix, size())];
      out.ids[j] = next_ids_[slot] - capacity();
      out.probabilities[j] =
          has_mass ? Mixed(selector_->Probability(slot)) : 1.0 / static_cast<double>(size());
    } else {
      uniforms_[searches++] = (u - mix) / (1 - mix);
      slots_.push_back(static_cast<std::uint32_t>(j));
    }
  }
  selector_->SampleAt(std::span(uniforms_).first(searches), std::span(draws_).first(searches));
  for (std::size_t s = 0; s < searches; ++s) {
    out.ids[slots_[s]] = next_ids_[draws_[s].slot] - capacity();
    out.probabilities[slots_[s]] = Mixed(draws_[s].probability);
  }
  counters_.drawn += count;
  if (!has_mass) counters_.uniform_fallbacks += count;
  double smallest = 1;
  if (options.normalization == WeightNormalization::kBufferMax) {
    const bool all_positive = selector_->positive_count() == size();
    smallest = !has_mass                           ? 1.0 / static_cast<double>(size())
               : all_positive || uniform_mix_ == 0 ? Mixed(selector_->SmallestProbability())
                                                   : Mixed(0);
  }
  ImportanceWeights(out.probabilities, static_cast<double>(size()), options.importance_exponent,
                    options.normalization, smallest, out.weights);
}

UpdateCounts SlotIndex::SetPriorities(std::span<const std::uint64_t> ids,
                                      std::span<const double> priorities) {
  UPER_CHECK(ids.size() == priorities.size(), "one priority per id");
  slots_.clear();
  priorities_.clear();
  UpdateCounts counts;
  largest_priority_ = DecayedLargest(largest_priority_, largest_priority_decay_);
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const std::optional<float> stored = AcceptPriority(priorities[j]);
    const std::size_t slot = ids[j] % capacity();
    if (ids[j] >= next_ids_[slot]) {
      ++counts.invalid;
    } else if (!Contains(ids[j])) {
      ++counts.evicted;
    } else if (!stored) {
      ++counts.invalid;
    } else {
      slots_.push_back(static_cast<std::uint32_t>(slot));
      priorities_.push_back(*stored);
      largest_priority_ = std::max(largest_priority_, double{*stored});
    }
  }
  selector_->SetPriorities(slots_, priorities_);
  counts.updated = slots_.size();
  counters_.updated += counts.updated;
  counters_.updates_of_evicted += counts.evicted;
  counters_.invalid_updates += counts.invalid;
  return counts;
}

void SlotIndex::SetPriorityExponent(double priority_exponent) {
  selector_->SetExponent(priority_exponent);
}

double SlotIndex::Priority(std::uint64_t id) const {
  UPER_CHECK(Contains(id), "no such item");
  return selector_->priority(id % capacity());
}

double SlotIndex::Probability(std::uint64_t id) const {
  UPER_CHECK(Contains(id), "no such item");
  if (!selector_->HasMass()) return 1.0 / static_cast<double>(size());
  return Mixed(selector_->Probability(id % capacity()));
}

void SlotIndex::Save(StateWriter& out) const {
  const SelectorState selector = selector_->GetState();
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.Write(std::uint64_t{capacity()});
  writer.Write(selector.priority_exponent);
  writer.Write(largest_priority_);
  writer.Write(stream_.position());
  SaveCounters(counters_, writer);
  out.Block("index", bytes);
  out.Block("ids", std::as_bytes(std::span(next_ids_)));
  out.Block("filled", std::as_bytes(std::span(filled_)));
  out.Block("priorities", std::as_bytes(std::span(selector.priorities)));
}

void SlotIndex::Load(StateReader& in) {
  constexpr std::uint64_t kMostNumberBytes = 1024;
  const std::vector<std::byte> bytes = in.Block("index", kMostNumberBytes);
  ByteReader reader(bytes);
  if (reader.Read<std::uint64_t>() != capacity()) in.Fail("is of another memory: its capacity");
  SelectorState selector = selector_->GetState();
  selector.priority_exponent = reader.ReadInRange(0.0, 4.0);
  largest_priority_ = reader.ReadInRange(double{kSmallestPriority}, double{kLargestPriority});
  stream_.set_position(reader.Read<std::uint64_t>());
  LoadCounters(reader, counters_);
  reader.ExpectEnd();
  ReadArray(in, "ids", next_ids_);
  filled_.resize(in.Begin("filled") / sizeof(std::uint32_t));
  in.Read(std::as_writable_bytes(std::span(filled_)));
  in.End();
  ReadArray(in, "priorities", selector.priorities);
  std::fill(places_.begin(), places_.end(), kNoPlace);
  for (std::size_t place = 0; place < filled_.size(); ++place) {
    const std::uint32_t slot = filled_[place];
    if (slot >= capacity() || IsFilled(slot)) in.Fail("is damaged: a slot is used twice");
    places_[slot] = static_cast<std::uint32_t>(place);
  }
  selector_->SetState(selector);
  for (std::size_t slot = 0; slot < capacity(); ++slot) {
    if (next_ids_[slot] % capacity() != slot) in.Fail("is damaged: an id of another slot");
    if (!IsFilled(slot) && selector_->priority(slot) != 0) in.Fail("is damaged: an empty slot");
  }
}

void SlotIndex::CheckValid() const {
  selector_->CheckValid();
  std::size_t filled = 0;
  for (std::size_t slot = 0; slot < capacity(); ++slot) {
    UPER_CHECK(next_ids_[slot] % capacity() == slot, "an id of another slot");
    if (!IsFilled(slot)) {
      UPER_CHECK(selector_->priority(slot) == 0, "an empty slot has a priority");
      continue;
    }
    UPER_CHECK(places_[slot] < filled_.size() && filled_[places_[slot]] == slot,
               "a slot is not where it should be");
    ++filled;
  }
  UPER_CHECK(filled == filled_.size(), "slots are counted wrong");
  UPER_CHECK(counters_.added - counters_.evicted == size(), "items are not accounted for");
}

}  // namespace uper
