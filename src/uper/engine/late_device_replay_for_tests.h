#pragma once

// A fake of DeviceReplay in plain host code, with the host's sum tree and any learner. It reports
// updates as late as the interface allows. So tests find callers that rely on more than the order
// of calls.

#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "uper/base/check.h"
#include "uper/engine/device_replay.h"
#include "uper/nn/learner.h"
#include "uper/replay/ring.h"
#include "uper/replay/selectors/proportional_selector.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper {

class LateDeviceReplay final : public DeviceReplay {
 public:
  LateDeviceReplay(const DeviceReplaySpec& spec, Learner& learner)
      : spec_(spec),
        learner_(learner),
        batch_(learner.spec().batch),
        records_(spec.capacity * spec.record_bytes),
        frames_(spec.frame_capacity * spec.frame_bytes) {
    ResetSelector();
    largest_ = static_cast<float>(spec.initial_priority);
  }

  const DeviceReplaySpec& spec() const override { return spec_; }

  // Called, if set, while values are computed, and by PrelaunchDecision().
  std::function<void()> on_decision, on_prelaunch;

  void MirrorHost(const DeviceRecordSource& transitions,
                  const DeviceRecordSource& frames) override {
    RunAll();
    if (transitions.first_id >= next_id_) {
      ResetSelector();
      first_id_ = next_id_ = transitions.first_id;
      for (std::uint64_t i = 0; i < ring().SlotOf(first_id_); ++i) {  // so that slots match the ids
        selector_->Append(1);
        selector_->RemoveOldest(1);
      }
    }
    selector_->RemoveOldest(transitions.first_id - first_id_);
    first_id_ = transitions.first_id;
    for (; next_id_ < transitions.next_id; ++next_id_) {
      transitions.read(next_id_, next_id_ + 1, Record(next_id_));
      selector_->Append(static_cast<float>(largest_));
    }
    if (spec_.stack_depth == 0) return;
    for (next_frame_ = std::max(next_frame_, frames.first_id); next_frame_ < frames.next_id;
         ++next_frame_) {
      const auto to = std::span(frames_).subspan(
          frame_ring().SlotOf(next_frame_) * spec_.frame_bytes, spec_.frame_bytes);
      const std::byte* reserved = FindReserved(next_frame_);
      if (reserved == nullptr) {
        frames.read(next_frame_, next_frame_ + 1, to);
      } else {
        std::memcpy(to.data(), reserved, to.size());
      }
    }
  }

  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override {
    Reserved& reserved = reserved_[next_reserved_++ % 2];
    reserved = {.first = first, .pixels = std::vector<std::byte>(count * spec_.frame_bytes)};
    return reserved.pixels;
  }

  bool HasPendingUpdates() override { return ++asked_ % 2 == 0; }

  void QueueUpdates(std::span<const DeviceUpdate> updates) override {
    UPER_CHECK(!updates.empty() && updates.size() <= kMaxUpdatesPerCall,
               "too many updates at once");
    UPER_CHECK(queued_.size() + done_.size() + updates.size() <= kMaxUnreportedUpdates,
               "reports must be fetched");
    for (const DeviceUpdate& update : updates) {
      queued_.push_back({.importance_exponent = update.importance_exponent,
                         .uniforms = {update.uniforms.begin(), update.uniforms.end()},
                         .ids = {update.ids.begin(), update.ids.end()},
                         .weights = {update.weights.begin(), update.weights.end()}});
    }
    // The learner must count the queued updates, so they run now. Their reports are kept.
    RunAll();
  }

  // Often returns nothing although a report is ready.
  std::optional<DeviceUpdateReport> PollReport() override {
    if (done_.empty() || ++asked_ % 3 != 0) return std::nullopt;
    return AwaitReport();
  }
  std::optional<DeviceUpdateReport> AwaitReport() override {
    if (done_.empty()) return std::nullopt;
    reported_ = std::move(done_.front());
    done_.pop_front();
    return DeviceUpdateReport{.loss = reported_.loss,
                              .gradient_norm = reported_.gradient_norm,
                              .uniform_fallback = reported_.uniform_fallback,
                              .ids = reported_.ids,
                              .weights = reported_.weights,
                              .noisy = reported_.noisy,
                              .td_error = reported_.td_error,
                              .uncertainty = reported_.uncertainty,
                              .priorities = reported_.priorities};
  }

  void BeginDecisions(std::span<const std::uint32_t> slots, int count) override {
    std::vector<std::byte> observations(count * spec_.observation_bytes);
    for (int i = 0; i < count; ++i) {
      GatherStack(slots.subspan(i * spec_.stack_depth, spec_.stack_depth),
                  std::span(observations).subspan(i * spec_.observation_bytes), /*acting=*/true);
    }
    q_.resize(std::size_t{1} * count * learner_.spec().network.actions);
    learner_.ActionValues(observations, count, q_);
    if (on_decision) on_decision();
  }
  void AwaitActionValues(int, std::span<float> q) override {
    std::copy(q_.begin(), q_.end(), q.begin());
  }

  void PrelaunchDecision() override {
    if (on_prelaunch) on_prelaunch();
  }

  void GetPriorities(std::span<float> priorities, double& largest) override {
    const SelectorState state = selector_->GetState();
    std::copy(state.priorities.begin(), state.priorities.end(), priorities.begin());
    largest = largest_;
  }

  void SetPriorities(std::span<const float> priorities, double largest) override {
    SelectorState state = selector_->GetState();
    state.priorities.assign(priorities.begin(), priorities.end());
    selector_->SetState(state);
    largest_ = largest;
  }

 private:
  struct Queued {
    double importance_exponent = 0;
    std::vector<double> uniforms;
    std::vector<std::uint64_t> ids;
    std::vector<float> weights;
  };
  struct Done {
    double loss = 0;
    double gradient_norm = 0;
    bool uniform_fallback = false;
    std::vector<std::uint64_t> ids;
    std::vector<float> weights;
    std::vector<std::uint8_t> noisy;
    std::vector<double> td_error;
    std::vector<Uncertainty> uncertainty;
    std::vector<Priority> priorities;
  };

  struct Reserved {
    std::uint64_t first = 0;
    std::vector<std::byte> pixels;
  };

  Ring ring() const { return {spec_.capacity}; }
  Ring frame_ring() const { return {spec_.frame_capacity}; }

  // The pixels of a frame in reserved memory, stored or not; nullptr if the frame is not there.
  const std::byte* FindReserved(std::uint64_t frame) const {
    for (const Reserved& reserved : reserved_) {
      const std::size_t at = (frame - reserved.first) * spec_.frame_bytes;
      if (frame >= reserved.first && at < reserved.pixels.size()) return &reserved.pixels[at];
    }
    return nullptr;
  }

  const std::byte* FrameAt(std::uint32_t slot) const {
    for (std::uint64_t frame = next_frame_; frame < next_frame_ + spec_.frame_capacity; ++frame) {
      if (frame_ring().SlotOf(frame) != slot) continue;
      if (const std::byte* reserved = FindReserved(frame)) return reserved;
    }
    return &frames_[slot * spec_.frame_bytes];
  }

  void ResetSelector() {
    selector_ = std::make_unique<ProportionalSelector>(
        spec_.capacity, SelectorOptions{.priority_exponent = spec_.priority_exponent,
                                        .uniform_mix = spec_.uniform_mix});
  }

  std::span<std::byte> Record(std::uint64_t id) {
    return std::span(records_).subspan(ring().SlotOf(id) * spec_.record_bytes, spec_.record_bytes);
  }

  // `acting`: frames that are not stored yet may be used.
  void GatherStack(std::span<const std::uint32_t> slots, std::span<std::byte> to, bool acting) {
    for (const std::uint32_t slot : slots) {
      if (slot == FrameStore::kZeroSlot) {
        std::memset(to.data(), 0, spec_.frame_bytes);
      } else {
        std::memcpy(to.data(), acting ? FrameAt(slot) : &frames_[slot * spec_.frame_bytes],
                    spec_.frame_bytes);
      }
      to = to.subspan(spec_.frame_bytes);
    }
  }

  void Gather(std::uint64_t id, bool next, std::span<std::byte> to) {
    const auto record = Record(id);
    if (spec_.stack_depth == 0) {
      std::memcpy(to.data(), &record[next ? spec_.observation_bytes : 0], spec_.observation_bytes);
      return;
    }
    std::vector<std::uint32_t> slots(spec_.stack_depth);
    const std::size_t bytes = slots.size() * sizeof(std::uint32_t);
    std::memcpy(slots.data(), &record[next ? bytes : 0], bytes);
    GatherStack(slots, to, /*acting=*/false);
  }

  void RunAll() {
    for (; !queued_.empty(); queued_.pop_front()) Run(queued_.front());
  }

  void Draw(const Queued& update, Done& done) {
    done.ids = update.ids;
    done.weights = update.weights;
    if (!spec_.samples_on_device) return;
    std::vector<uper::Draw> draws(batch_);
    std::vector<double> probabilities;
    done.uniform_fallback = selector_->SampleAt(update.uniforms, draws) > 0;
    done.ids.clear();
    for (std::size_t j = 0; j < batch_; ++j) {
      const std::size_t first = selector_->first_slot();
      done.ids.push_back(first_id_ + ring().RankOf(first, draws[j].slot));
      probabilities.push_back(draws[j].probability);
    }
    done.weights.resize(batch_);
    const bool smallest = spec_.normalization == WeightNormalization::kBufferMax;
    ImportanceWeights(probabilities, static_cast<double>(selector_->size()),
                      update.importance_exponent, spec_.normalization,
                      smallest ? selector_->SmallestProbability() : 1, done.weights);
  }

  void Run(const Queued& update) {
    Done done;
    Draw(update, done);
    std::vector<std::byte> s_tm1(batch_ * spec_.observation_bytes), s_t(s_tm1.size());
    std::vector<std::int32_t> actions;
    std::vector<float> rewards, discounts;
    std::vector<std::uint64_t> masks;
    for (std::size_t j = 0; j < batch_; ++j) {
      Gather(done.ids[j], false, std::span(s_tm1).subspan(j * spec_.observation_bytes));
      Gather(done.ids[j], true, std::span(s_t).subspan(j * spec_.observation_bytes));
      RecordTail tail;
      const auto record = Record(done.ids[j]);
      std::memcpy(&tail, record.last(sizeof(tail)).data(), sizeof(tail));
      actions.push_back(tail.a_tm1);
      rewards.push_back(tail.r_t);
      discounts.push_back(tail.discount_t);
      masks.push_back(tail.mask);
      done.noisy.push_back(tail.noisy != 0 ? 1 : 0);
    }
    const LearnerOutput output = learner_.Update({.s_tm1 = s_tm1,
                                                  .s_t = s_t,
                                                  .a_tm1 = actions,
                                                  .r_t = rewards,
                                                  .discount_t = discounts,
                                                  .weights = done.weights,
                                                  .masks = masks});
    done.loss = output.loss;
    done.gradient_norm = output.gradient_norm;
    done.td_error.assign(output.td_error.begin(), output.td_error.end());
    done.uncertainty.assign(output.uncertainty.begin(), output.uncertainty.end());
    SetDrawn(done);
    done_.push_back(std::move(done));
  }

  void SetDrawn(Done& done) {
    const bool sets = spec_.rule != PriorityRule::kUniform;
    if (sets) largest_ = DecayedLargest(largest_, spec_.largest_priority_decay);
    std::vector<std::uint32_t> slots;
    std::vector<float> priorities;
    for (std::size_t j = 0; j < batch_; ++j) {
      done.priorities.push_back(ComputePriority(
          spec_.rule, {.uncertainty = done.uncertainty[j], .td_error = done.td_error[j]},
          spec_.limits));
      float stored = 0;
      if (!sets || !AcceptPriority(done.priorities[j].value, stored)) continue;
      slots.push_back(static_cast<std::uint32_t>(ring().SlotOf(done.ids[j])));
      priorities.push_back(stored);
      largest_ = std::max(largest_, double{stored});
    }
    selector_->SetPriorities(slots, priorities);
  }

  const DeviceReplaySpec spec_;
  Learner& learner_;
  const std::size_t batch_;
  std::vector<std::byte> records_, frames_;
  std::unique_ptr<Selector> selector_;
  double largest_ = 1;
  std::uint64_t first_id_ = 0, next_id_ = 0, next_frame_ = 0;
  std::deque<Queued> queued_;
  std::deque<Done> done_;
  Done reported_;
  std::vector<float> q_;
  Reserved reserved_[2];
  std::size_t next_reserved_ = 0;
  int asked_ = 0;
};

}  // namespace uper
