#include "uper/engine/device_engine.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper {
namespace {

DeviceRecordSource SourceOf(const checkpoint::RecordStream& stream) {
  return {.first_id = stream.first_id, .next_id = stream.next_id, .read = stream.read};
}

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(const EngineSpec& spec, Learner& learner, TransitionStore& store,
               DeviceReplay& replay, UpdateSink& sink)
      : spec_(spec),
        learner_(learner),
        store_(store),
        replay_(replay),
        sink_(sink),
        actions_(learner.spec().network.actions),
        probabilities_(learner.spec().batch),
        uniforms_(DeviceReplay::kMaxUpdatesPerCall * probabilities_.size()),
        ids_(uniforms_.size()),
        weights_(uniforms_.size()),
        slots_(std::size_t{1} * spec.actors * replay.spec().stack_depth),
        values_(std::size_t{1} * spec.actors * actions_),
        viewed_(values_.size()) {
    const DeviceReplaySpec& memory = replay.spec();
    UPER_CHECK(spec.rule == memory.rule && spec.limits == memory.limits &&
                   spec.normalization == memory.normalization,
               "the device must set the priorities and weights of the engine");
  }

  Lookahead lookahead() const override {
    if (!spec_.overlap) return Lookahead::kNone;
    const bool reserves = stacks_frames() && spec_.actors <= DeviceReplay::kMaxReservedFrames;
    return reserves ? Lookahead::kActors : Lookahead::kUpdates;
  }
  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override {
    return replay_.ReserveFrames(first, count);
  }

  void BeginDecisions(std::span<const ActorView> views) override {
    view_count_ = views.size();
    if (!stacks_frames()) return ValueWholeObservations(views);
    if (!IsMirrored()) Mirror();
    const std::size_t depth = replay_.spec().stack_depth;
    decision_count_ = RoundedUp(views.size());
    for (std::size_t i = 0; i < decision_count_; ++i) {
      const ActorView& view = views[std::min(i, views.size() - 1)];
      store_.StackSlots(view.actor, view.next, std::span(slots_).subspan(i * depth, depth));
    }
    replay_.BeginDecisions(std::span(slots_).first(decision_count_ * depth),
                           static_cast<int>(decision_count_));
    queued_behind_decisions_ = false;
  }

  std::span<const float> AwaitActionValues() override {
    const auto viewed = std::span(viewed_).first(view_count_ * actions_);
    if (!stacks_frames()) return viewed;
    if (spec_.actors == 1 && spec_.overlap) PrelaunchNextDecision();
    const auto values = std::span(values_).first(decision_count_ * actions_);
    replay_.AwaitActionValues(static_cast<int>(decision_count_), values);
    return values.first(viewed.size());
  }

  void Learn(int updates, double importance_exponent) override {
    Mirror();
    while (updates > 0) {
      const int count = std::min(updates, DeviceReplay::kMaxUpdatesPerCall);
      QueueUpdates(count, importance_exponent);
      updates -= count;
    }
  }
  void CopyTarget() override { learner_.CopyTarget(); }
  bool HasPendingUpdates() override { return replay_.HasPendingUpdates(); }
  void AwaitUpdates() override {
    while (const auto report = replay_.AwaitReport()) Take(*report);
  }

  void SyncToHost() override {
    AwaitUpdates();
    if (!replay_.spec().samples_on_device) return;
    Mirror();
    std::vector<float> priorities(store_.buffer().size());
    double largest = 0;
    replay_.GetPriorities(priorities, largest);
    store_.mutable_buffer().LoadDevicePriorities(std::move(priorities), largest);
  }

  void SyncFromHost() override {
    Mirror();
    const ReplayBufferState state = store_.buffer().GetState();
    replay_.SetPriorities(state.selector.priorities, state.largest_priority);
  }

 private:
  bool stacks_frames() const { return replay_.spec().stack_depth > 0; }

  // Rounds up to whole groups of decisions, because every number of decisions needs a CUDA graph of
  // its own.
  std::size_t RoundedUp(std::size_t views) const {
    constexpr std::size_t kGroup = 4;
    return std::min<std::size_t>(CeilDiv(views, kGroup) * kGroup, spec_.actors);
  }

  void ValueWholeObservations(std::span<const ActorView> views) {
    learner_.ActionValues(store_.current(), spec_.actors, values_);
    for (std::size_t i = 0; i < views.size(); ++i) {
      std::ranges::copy(std::span(values_).subspan(views[i].actor * actions_, actions_),
                        viewed_.begin() + static_cast<std::ptrdiff_t>(i * actions_));
    }
  }

  void Mirror() {
    replay_.MirrorHost(SourceOf(store_.Transitions()), SourceOf(store_.Frames()));
    mirrored_frames_ = store_.Frames().next_id;
  }
  bool IsMirrored() const { return mirrored_frames_ == store_.Frames().next_id; }

  // Does the work in advance that the next decision of a single actor would have to wait for.
  void PrelaunchNextDecision() {
    if (!IsMirrored()) Mirror();
    replay_.PrelaunchDecision();
    if (!queued_behind_decisions_) TakeFinishedReports();
  }

  void QueueUpdates(int count, double importance_exponent) {
    while (unreported_ + count > DeviceReplay::kMaxUnreportedUpdates) {
      Take(*replay_.AwaitReport());
    }
    DeviceUpdate updates[DeviceReplay::kMaxUpdatesPerCall];
    for (int i = 0; i < count; ++i) updates[i] = Draw(i, importance_exponent);
    replay_.QueueUpdates(std::span(updates).first(count));
    unreported_ += count;
    queued_behind_decisions_ = true;
    // Takes reports long before the caller would have to wait for one.
    if (unreported_ > DeviceReplay::kMaxUnreportedUpdates / 4) TakeFinishedReports();
  }

  void TakeFinishedReports() {
    while (const auto report = replay_.PollReport()) Take(*report);
  }

  // The i-th update of a call.
  DeviceUpdate Draw(int i, double importance_exponent) {
    ReplayBuffer& buffer = store_.mutable_buffer();
    const std::size_t batch = probabilities_.size();
    const auto part = [&](auto& list) { return std::span(list).subspan(i * batch, batch); };
    if (replay_.spec().samples_on_device) {
      buffer.DrawUniforms(part(uniforms_));
      return {.importance_exponent = importance_exponent, .uniforms = part(uniforms_)};
    }
    buffer.Sample(
        {.importance_exponent = importance_exponent, .normalization = spec_.normalization},
        {.ids = part(ids_), .probabilities = probabilities_, .weights = part(weights_)});
    return {
        .importance_exponent = importance_exponent, .ids = part(ids_), .weights = part(weights_)};
  }

  void Take(const DeviceUpdateReport& report) {
    --unreported_;
    if (!report.finite) {
      ThrowWithBatch(ErrorKind::kNumeric,
                     "update " + std::to_string(learner_.updates() - unreported_) +
                         ": the loss or the gradient is not finite (loss " +
                         std::to_string(report.loss) + ")",
                     report.ids);
    }
    sink_.Take({.loss = report.loss,
                .gradient_norm = report.gradient_norm,
                .weights = report.weights,
                .td_error = report.td_error,
                .uncertainty = report.uncertainty,
                .priorities = report.priorities,
                .noisy = report.noisy,
                .refused_priorities = Count(report)});
  }

  // Counts in the store what the device did. Returns the number of refused priorities.
  std::size_t Count(const DeviceUpdateReport& report) {
    UpdateCounts counts;
    if (spec_.rule != PriorityRule::kUniform) {
      for (const Priority& priority : report.priorities) {
        ++(AcceptPriority(priority.value) ? counts.updated : counts.invalid);
      }
    }
    // Draws of the host are counted already.
    const std::size_t drawn = replay_.spec().samples_on_device ? report.ids.size() : 0;
    store_.mutable_buffer().CountDeviceDraws(drawn, report.uniform_fallback ? drawn : 0, counts);
    return counts.invalid;
  }

  const EngineSpec spec_;
  Learner& learner_;
  TransitionStore& store_;
  DeviceReplay& replay_;
  UpdateSink& sink_;
  const std::size_t actions_;
  std::size_t unreported_ = 0;            // queued updates without a report
  std::size_t view_count_ = 0;            // of the decisions under way
  std::size_t decision_count_ = 0;        // of these, rounded up
  bool queued_behind_decisions_ = false;  // updates, since the last decisions
  std::uint64_t mirrored_frames_ = 0;     // frames below this id are mirrored
  std::vector<double> probabilities_;     // [batch]
  // The draws of a call, [DeviceReplay::kMaxUpdatesPerCall, batch].
  std::vector<double> uniforms_;
  std::vector<std::uint64_t> ids_;
  std::vector<float> weights_;
  std::vector<std::uint32_t> slots_;  // [actor, depth]; none if observations are whole
  std::vector<float> values_;         // [actor, action]
  std::vector<float> viewed_;         // [view, action]
};

}  // namespace

std::unique_ptr<Engine> MakeDeviceEngine(const EngineSpec& spec, Learner& learner,
                                         TransitionStore& store, DeviceReplay& replay,
                                         UpdateSink& sink) {
  return std::make_unique<DeviceEngine>(spec, learner, store, replay, sink);
}

}  // namespace uper
