#include "uper/replay/selectors/selector.h"

#include <algorithm>
#include <array>
#include <string>

#include "uper/base/check.h"
#include "uper/replay/ring.h"
#include "uper/replay/selectors/selection_math.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper {
namespace {

constexpr std::size_t kChunk = 64;  // draws in flight together, on the stack
constexpr double kBelowOne = 1 - 0x1p-53;

}  // namespace

void SelectorOptions::Validate() const {
  if (!(priority_exponent >= 0 && priority_exponent <= 4)) {
    throw Error(ErrorKind::kUsage,
                "priority_exponent must lie in [0, 4], not " + std::to_string(priority_exponent));
  }
  if (!(uniform_mix >= 0 && uniform_mix <= 1)) {
    throw Error(ErrorKind::kUsage,
                "uniform_mix must lie in [0, 1], not " + std::to_string(uniform_mix));
  }
  if (!(recency_half_life == 0 || (recency_half_life >= 1 && recency_half_life <= 1e18))) {
    throw Error(ErrorKind::kUsage, "recency_half_life must be 0 or lie in [1, 1e18], not " +
                                       std::to_string(recency_half_life));
  }
}

Selector::Selector(std::size_t capacity, const SelectorOptions& options)
    : options_(options), priorities_(capacity, 0.0F) {
  options.Validate();
  UPER_CHECK(capacity >= 1 && capacity <= 0xFFFFFFFFU, "capacity must lie in [1, 2^32)");
}

std::uint32_t Selector::Append(float priority) {
  UPER_CHECK(IsStoredPriority(priority), "not a priority that can be stored");
  const auto slot = static_cast<std::uint32_t>(SlotAt(size_ == capacity() ? 0 : size_));
  if (size_ == capacity()) {
    first_slot_ = first_slot_ + 1 == capacity() ? 0 : first_slot_ + 1;
  } else {
    ++size_;
  }
  ++appended_;
  StoreAppended({&slot, 1}, {&priority, 1});
  return slot;
}

void Selector::StoreAppended(std::span<const std::uint32_t> slots,
                             std::span<const float> priorities) {
  if (!AgesChanged()) return Update(slots, priorities);
  for (std::size_t j = 0; j < slots.size(); ++j) ExchangePriority(slots[j], priorities[j]);
  Rebuild();
}

std::uint64_t Selector::NumberOf(std::size_t slot) const {
  return appended_ - size_ + Ring{capacity()}.RankOf(first_slot_, slot);
}

void Selector::AppendMany(std::span<const float> priorities) {
  const std::size_t count = priorities.size();
  UPER_CHECK(count <= capacity(), "more items than the ring has slots");
  UPER_CHECK(std::all_of(priorities.begin(), priorities.end(), IsStoredPriority),
             "not a priority that can be stored");
  appended_slots_.resize(count);
  const std::size_t replaced = size_ + count > capacity() ? size_ + count - capacity() : 0;
  for (std::size_t j = 0; j < count; ++j) {
    appended_slots_[j] = static_cast<std::uint32_t>(SlotAt((size_ + j) % capacity()));
  }
  first_slot_ = SlotAt(replaced % capacity());
  size_ += count - replaced;
  appended_ += count;
  StoreAppended(appended_slots_, priorities);
}

void Selector::RemoveOldest(std::size_t count) {
  UPER_CHECK(count <= size_, "more to remove than there is");
  constexpr std::array<float, kChunk> kZeros{};
  std::array<std::uint32_t, kChunk> slots;
  while (count > 0) {
    const std::size_t n = std::min(count, kChunk);
    for (std::size_t j = 0; j < n; ++j) slots[j] = static_cast<std::uint32_t>(SlotAt(j));
    Update(std::span(slots).first(n), std::span(kZeros).first(n));
    first_slot_ = SlotAt(n);
    size_ -= n;
    count -= n;
  }
}

void Selector::SetPriorities(std::span<const std::uint32_t> slots,
                             std::span<const float> priorities) {
  UPER_CHECK(slots.size() == priorities.size(), "one priority a slot");
  bool valid = true;
  for (const std::uint32_t slot : slots) valid &= IsFilled(slot);
  for (const float priority : priorities) valid &= IsStoredPriority(priority);
  UPER_CHECK(valid, "slots must be filled and priorities such as can be stored");
  Update(slots, priorities);
}

void Selector::SetExponent(double priority_exponent) {
  SelectorOptions options = options_;
  options.priority_exponent = priority_exponent;
  options.Validate();
  options_ = options;
  Rebuild();
}

std::size_t Selector::Sample(RandomStream& stream, std::span<Draw> draws) {
  uniforms_.resize(draws.size());
  DrawUniforms(stream, uniforms_);
  return SampleAt(uniforms_, draws);
}

void Selector::DrawUniforms(RandomStream& stream, std::span<double> uniforms) const {
  for (double& uniform : uniforms) uniform = stream.Uniform();
  if (!options_.stratified) return;
  const double parts = static_cast<double>(uniforms.size());
  for (std::size_t j = 0; j < uniforms.size(); ++j) {
    uniforms[j] = std::min((static_cast<double>(j) + uniforms[j]) / parts, kBelowOne);
  }
}

std::size_t Selector::SampleAt(std::span<const double> uniforms, std::span<Draw> draws) const {
  UPER_CHECK(uniforms.size() == draws.size(), "one random number per draw");
  UPER_CHECK(size_ > 0, "nothing to draw from");
  if (!(TotalMass() > 0)) {
    const double probability = 1.0 / static_cast<double>(size_);
    for (std::size_t j = 0; j < draws.size(); ++j) {
      draws[j] = {.slot = UniformSlot(uniforms[j]), .probability = probability};
    }
    return draws.size();
  }
  for (std::size_t begin = 0; begin < draws.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, draws.size() - begin);
    SampleChunk(uniforms.subspan(begin, count), draws.subspan(begin, count));
  }
  return 0;
}

void Selector::SampleChunk(std::span<const double> uniforms, std::span<Draw> draws) const {
  const double mix = options_.uniform_mix;
  const double total = TotalMass();
  std::array<double, kChunk> fractions;
  std::array<double, kChunk> masses;
  std::array<std::uint32_t, kChunk> slots;
  std::array<std::uint32_t, kChunk> owners;  // the draw that each search is for
  std::size_t searches = 0;
  for (std::size_t j = 0; j < draws.size(); ++j) {
    if (uniforms[j] < mix) {
      const std::uint32_t slot = UniformSlot(uniforms[j] / mix);
      draws[j] = {.slot = slot, .probability = Mixed(Mass(slot), total)};
    } else {
      fractions[searches] = (uniforms[j] - mix) / (1 - mix);
      owners[searches++] = static_cast<std::uint32_t>(j);
    }
  }
  if (searches == 0) return;
  Find(std::span(fractions).first(searches), std::span(slots).first(searches),
       std::span(masses).first(searches));
  for (std::size_t s = 0; s < searches; ++s) {
    draws[owners[s]] = {.slot = slots[s], .probability = Mixed(masses[s], total)};
  }
}

double Selector::Probability(std::size_t slot) const {
  UPER_CHECK(IsFilled(slot), "an empty slot has no probability");
  const double total = TotalMass();
  return total > 0 ? Mixed(Mass(slot), total) : 1.0 / static_cast<double>(size_);
}

double Selector::SmallestProbability() {
  UPER_CHECK(size_ > 0, "nothing to draw from");
  const double total = TotalMass();
  if (!(total > 0)) return 1.0 / static_cast<double>(size_);
  if (positive_count_ < size_ && options_.uniform_mix > 0) return Mixed(0, total);
  return Mixed(SmallestMass(), total);
}

SelectorState Selector::GetState() const {
  SelectorState state{.capacity = capacity(),
                      .first_slot = first_slot_,
                      .priorities = {},
                      .priority_exponent = exponent(),
                      .appended = appended_};
  state.priorities.reserve(size_);
  for (std::size_t i = 0; i < size_; ++i) state.priorities.push_back(priorities_[SlotAt(i)]);
  return state;
}

void Selector::SetState(const SelectorState& state) {
  SelectorOptions options = options_;
  options.priority_exponent = state.priority_exponent;
  options.Validate();
  if (state.capacity != capacity() || state.first_slot >= capacity() ||
      state.priorities.size() > capacity() ||
      !std::all_of(state.priorities.begin(), state.priorities.end(), IsStoredPriority)) {
    throw Error(ErrorKind::kCorrupt,
                "selector state does not fit a selector of capacity " + std::to_string(capacity()));
  }
  options_ = options;
  first_slot_ = state.first_slot;
  size_ = state.priorities.size();
  appended_ = std::max<std::uint64_t>(state.appended, size_);
  positive_count_ = 0;
  std::fill(priorities_.begin(), priorities_.end(), 0.0F);
  for (std::size_t i = 0; i < size_; ++i) ExchangePriority(SlotAt(i), state.priorities[i]);
  AgesChanged();
  Rebuild();
}

void Selector::CheckValid() const {
  UPER_CHECK(size_ <= capacity() && first_slot_ < capacity(), "the ring is out of range");
  std::size_t positive = 0;
  for (std::size_t slot = 0; slot < capacity(); ++slot) {
    UPER_CHECK(IsStoredPriority(priorities_[slot]), "a stored priority is not valid");
    UPER_CHECK(IsFilled(slot) || priorities_[slot] == 0, "an empty slot has a priority");
    positive += priorities_[slot] > 0 ? 1 : 0;
  }
  UPER_CHECK(positive == positive_count_, "the count of positive priorities is wrong");
  CheckMasses();
}

float Selector::ExchangePriority(std::size_t slot, float priority) {
  const float former = priorities_[slot];
  priorities_[slot] = priority;
  positive_count_ += static_cast<std::size_t>(priority > 0);
  positive_count_ -= static_cast<std::size_t>(former > 0);
  return former;
}

std::uint32_t Selector::UniformSlot(double fraction) const {
  return static_cast<std::uint32_t>(SlotAt(UniformRank(fraction, size_)));
}

std::size_t Selector::SlotAt(std::size_t age_rank) const {
  return Ring{capacity()}.SlotAt(first_slot_, age_rank);
}

double Selector::Mixed(double mass, double total) const {
  return MixedProbability(mass, total, options_.uniform_mix, size_);
}

bool Selector::IsFilled(std::size_t slot) const {
  if (slot >= capacity()) return false;
  return Ring{capacity()}.RankOf(first_slot_, slot) < size_;
}

}  // namespace uper
