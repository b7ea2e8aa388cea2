#include <algorithm>
#include <cstddef>
#include <vector>

#include "uper/base/check.h"
#include "uper/engine/experience_learner.h"
#include "uper/engine/replay_records.h"
#include "uper/replay/selectors/stored_priority.h"
#include "uper/replay/storage/frame_store.h"

namespace uper {
namespace {

DeviceRecordSource SourceOf(const RecordStream& stream) {
  return {.first_id = stream.first_id, .next_id = stream.next_id, .read = stream.read};
}

// Queues updates on a GPU that has the memory too. The host's experience stays the source of what
// is stored; the GPU takes over what is new before it is needed.
class GpuExperienceLearner final : public ExperienceLearner {
 public:
  GpuExperienceLearner(const LearningParts& parts, DeviceReplay& memory)
      : parts_(parts),
        memory_(memory),
        probabilities_(parts.config.replay.batch_size),
        uniforms_(DeviceReplay::kMaxUpdatesPerCall * probabilities_.size()),
        ids_(uniforms_.size()),
        weights_(uniforms_.size()),
        slots_(std::size_t{1} * parts.config.environments * memory.spec().stack_depth),
        values_(std::size_t{1} * parts.config.environments * parts.learner.spec().network.actions) {
  }

  void ActionValues(std::span<const Sight> sights, std::span<float> q,
                    const std::function<void()>& meanwhile) override {
    if (slots_.empty()) {
      return parts_.learner.ActionValues(parts_.experience.current(), parts_.config.environments,
                                         q);
    }
    if (!IsFollowed()) MirrorHost();
    const std::size_t depth = memory_.spec().stack_depth;
    const std::size_t count = CountOf(sights.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Sight& sight = sights[std::min(i, sights.size() - 1)];
      parts_.experience.Slots(sight.environment, sight.next,
                              std::span(slots_).subspan(i * depth, depth));
    }
    memory_.BeginDecisions(std::span(slots_).first(count * depth), static_cast<int>(count));
    queued_meanwhile_ = false;
    meanwhile();
    if (parts_.config.environments == 1 && parts_.overlaps) PrelaunchDecision();
    const std::size_t actions = q.size() / parts_.config.environments;
    const auto values = std::span(values_).first(count * actions);
    memory_.AwaitActionValues(static_cast<int>(count), values);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      std::ranges::copy(values.subspan(i * actions, actions),
                        q.begin() + static_cast<std::ptrdiff_t>(sights[i].environment * actions));
    }
  }
  bool values_ahead() const override {
    return !slots_.empty() && parts_.config.environments <= DeviceReplay::kMaxReservedFrames;
  }
  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override {
    return memory_.ReserveFrames(first, count);
  }

  void Learn(int updates, double importance_exponent) override {
    const Stopwatch watch(parts_.times.learning);
    MirrorHost();
    while (updates > 0) {
      const int count = static_cast<int>(
          std::min<std::int64_t>({updates, DeviceReplay::kMaxUpdatesPerCall,
                                  UpdatesToNextCopy(parts_.config, parts_.learner)}));
      LearnAtOnce(count, importance_exponent);
      CopyTargetIfDue(parts_.config, parts_.learner);
      updates -= count;
    }
  }
  bool queues() const override { return true; }
  bool HasPendingUpdates() override { return memory_.HasPendingUpdates(); }

  void Finish() override {
    const Stopwatch watch(parts_.times.learning);
    while (const auto report = memory_.NextReport(/*wait=*/true)) Take(*report);
  }

  void BringHome() override {
    Finish();
    if (!memory_.spec().samples_on_device) return;
    MirrorHost();
    std::vector<float> priorities(parts_.experience.buffer().size());
    double largest = 0;
    memory_.GetPriorities(priorities, largest);
    parts_.experience.mutable_buffer().LoadDevicePriorities(std::move(priorities), largest);
  }

  void Restored() override {
    MirrorHost();
    const ReplayBufferState state = parts_.experience.buffer().GetState();
    memory_.SetPriorities(state.selector.priorities, state.largest_priority);
  }

 private:
  // How many are valued at once: every number has its own CUDA graph.
  std::size_t CountOf(std::size_t sights) const {
    constexpr std::size_t kGroup = 4;
    return std::min<std::size_t>((sights + kGroup - 1) / kGroup * kGroup,
                                 parts_.config.environments);
  }

  void MirrorHost() {
    memory_.MirrorHost(SourceOf(parts_.experience.Transitions()),
                       SourceOf(parts_.experience.Frames()));
    followed_frames_ = parts_.experience.Frames().next_id;
  }
  bool IsFollowed() const { return followed_frames_ == parts_.experience.Frames().next_id; }

  // What else the next decision of one environment would have to wait for.
  void PrelaunchDecision() {
    if (!IsFollowed()) MirrorHost();
    memory_.PrelaunchDecision();
    if (!queued_meanwhile_) TakeReports();
  }

  void LearnAtOnce(int count, double importance_exponent) {
    while (pending_ + count > DeviceReplay::kMaxUnreportedUpdates)
      Take(*memory_.NextReport(/*wait=*/true));
    DeviceUpdate updates[DeviceReplay::kMaxUpdatesPerCall];
    for (int i = 0; i < count; ++i) updates[i] = Draw(i, importance_exponent);
    memory_.QueueUpdates(std::span(updates).first(count));
    pending_ += count;
    queued_meanwhile_ = true;
    if (pending_ > DeviceReplay::kMaxUnreportedUpdates / 4)
      TakeReports();  // long before one is waited for
  }

  // Those that are there.
  void TakeReports() {
    while (const auto report = memory_.NextReport(/*wait=*/false)) Take(*report);
  }

  // The i-th of several.
  DeviceUpdate Draw(int i, double importance_exponent) {
    ReplayBuffer& buffer = parts_.experience.mutable_buffer();
    const std::size_t batch = probabilities_.size();
    const auto mine = [&](auto& list) { return std::span(list).subspan(i * batch, batch); };
    if (memory_.spec().samples_on_device) {
      buffer.DrawUniforms(mine(uniforms_));
      return {.importance_exponent = importance_exponent, .uniforms = mine(uniforms_)};
    }
    buffer.Sample({.importance_exponent = importance_exponent,
                   .normalization = parts_.config.replay.weight_normalization},
                  {.ids = mine(ids_), .probabilities = probabilities_, .weights = mine(weights_)});
    return {
        .importance_exponent = importance_exponent, .ids = mine(ids_), .weights = mine(weights_)};
  }

  void Take(const DeviceUpdateReport& report) {
    --pending_;
    if (!report.finite) {
      ThrowWithBatch(ErrorKind::kNumeric,
                     "update " + std::to_string(parts_.learner.updates() - pending_) +
                         ": the loss or the gradient is not finite (loss " +
                         std::to_string(report.loss) + ")",
                     report.ids);
    }
    AddTo(parts_.window, {.loss = report.loss,
                          .gradient_norm = report.gradient_norm,
                          .weights = report.weights,
                          .td_error = report.td_error,
                          .uncertainty = report.uncertainty,
                          .priorities = report.priorities,
                          .noisy = report.noisy});
    Count(report);
  }

  void Count(const DeviceUpdateReport& report) {
    UpdateCounts counts;
    if (memory_.spec().rule != PriorityRule::kUniform) {
      for (const Priority& priority : report.priorities) {
        ++(ToStoredPriority(priority.value) ? counts.updated : counts.invalid);
      }
      parts_.window.refused_priorities += static_cast<double>(counts.invalid);
    }
    const std::size_t drawn =
        memory_.spec().samples_on_device ? report.ids.size() : 0;  // else counted
    parts_.experience.mutable_buffer().CountDeviceDraws(drawn, report.massless ? drawn : 0, counts);
  }

  const LearningParts parts_;
  DeviceReplay& memory_;
  std::size_t pending_ = 0;            // queued and not taken
  bool queued_meanwhile_ = false;      // updates, beside the decisions under way
  std::uint64_t followed_frames_ = 0;  // up to here
  std::vector<double> probabilities_;  // [batch]
  // [DeviceReplay::kMaxUpdatesPerCall, batch]: of the draws of updates.
  std::vector<double> uniforms_;
  std::vector<std::uint64_t> ids_;
  std::vector<float> weights_;
  std::vector<std::uint32_t> slots_;  // [environment, depth]; none if observations are whole
  std::vector<float> values_;         // [environment, action]
};

}  // namespace

std::unique_ptr<ExperienceLearner> MakeGpuExperienceLearner(const LearningParts& parts,
                                                            DeviceReplay& memory) {
  return std::make_unique<GpuExperienceLearner>(parts, memory);
}

}  // namespace uper
