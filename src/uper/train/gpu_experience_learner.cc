#include <algorithm>
#include <cstddef>
#include <vector>

#include "uper/base/check.h"
#include "uper/replay/frame_store.h"
#include "uper/replay/stored_priority.h"
#include "uper/train/experience_learner.h"
#include "uper/train/replay_records.h"

namespace uper {
namespace {

// Records go to the GPU as they are.
static_assert(sizeof(GpuRecordTail) == sizeof(RecordTail) &&
              offsetof(GpuRecordTail, r_t) == offsetof(RecordTail, r_t) &&
              offsetof(GpuRecordTail, discount_t) == offsetof(RecordTail, discount_t) &&
              offsetof(GpuRecordTail, noisy) == offsetof(RecordTail, noisy) &&
              offsetof(GpuRecordTail, mask) == offsetof(RecordTail, mask));
static_assert(kGpuZeroSlot == FrameStore::kZeroSlot);

GpuRecordSource SourceOf(const RecordStream& stream) {
  return {.first_id = stream.first_id, .next_id = stream.next_id, .read = stream.read};
}

// Queues updates on a GPU that has the memory too. The host's experience stays the source of what
// is stored; the GPU takes over what is new before it is needed.
class GpuExperienceLearner final : public ExperienceLearner {
 public:
  GpuExperienceLearner(const LearningParts& parts, GpuReplay& memory)
      : parts_(parts),
        memory_(memory),
        probabilities_(parts.config.replay.batch_size),
        uniforms_(GpuReplay::kMostUpdates * probabilities_.size()),
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
    if (!IsFollowed()) Follow();
    const std::size_t depth = memory_.spec().stack_depth;
    const std::size_t count = CountOf(sights.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Sight& sight = sights[std::min(i, sights.size() - 1)];
      parts_.experience.Slots(sight.environment, sight.next,
                              std::span(slots_).subspan(i * depth, depth));
    }
    memory_.BeginActing(std::span(slots_).first(count * depth), static_cast<int>(count));
    queued_meanwhile_ = false;
    meanwhile();
    if (parts_.config.environments == 1 && parts_.overlaps) PrepareActing();
    const std::size_t actions = q.size() / parts_.config.environments;
    const auto values = std::span(values_).first(count * actions);
    memory_.FinishActing(static_cast<int>(count), values);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      std::ranges::copy(values.subspan(i * actions, actions),
                        q.begin() + static_cast<std::ptrdiff_t>(sights[i].environment * actions));
    }
  }
  bool values_ahead() const override {
    return !slots_.empty() && parts_.config.environments <= GpuReplay::kMostFramesToCome;
  }
  std::span<std::byte> FramesToCome(std::uint64_t first, std::size_t count) override {
    return memory_.FramesToCome(first, count);
  }

  void Learn(int updates, double importance_exponent) override {
    const Stopwatch watch(parts_.times.learning);
    Follow();
    while (updates > 0) {
      const int count = static_cast<int>(std::min<std::int64_t>(
          {updates, GpuReplay::kMostUpdates, UpdatesToNextCopy(parts_.config, parts_.learner)}));
      LearnAtOnce(count, importance_exponent);
      CopyTargetIfDue(parts_.config, parts_.learner);
      updates -= count;
    }
  }
  bool queues() const override { return true; }
  bool IsBusy() override { return memory_.IsBusy(); }

  void Finish() override {
    const Stopwatch watch(parts_.times.learning);
    while (const auto report = memory_.NextReport(/*wait=*/true)) Take(*report);
  }

  void BringHome() override {
    Finish();
    if (!memory_.spec().draws) return;
    Follow();
    std::vector<float> priorities(parts_.experience.buffer().size());
    double largest = 0;
    memory_.GetPriorities(priorities, largest);
    parts_.experience.remote_buffer().SetRemotePriorities(std::move(priorities), largest);
  }

  void Restored() override {
    Follow();
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

  void Follow() {
    memory_.Follow(SourceOf(parts_.experience.Transitions()), SourceOf(parts_.experience.Frames()));
    followed_frames_ = parts_.experience.Frames().next_id;
  }
  bool IsFollowed() const { return followed_frames_ == parts_.experience.Frames().next_id; }

  // What else the next decision of one environment would have to wait for.
  void PrepareActing() {
    if (!IsFollowed()) Follow();
    memory_.PrepareActing();
    if (!queued_meanwhile_) TakeReports();
  }

  void LearnAtOnce(int count, double importance_exponent) {
    while (pending_ + count > GpuReplay::kMaxQueued) Take(*memory_.NextReport(/*wait=*/true));
    GpuUpdate updates[GpuReplay::kMostUpdates];
    for (int i = 0; i < count; ++i) updates[i] = Draw(i, importance_exponent);
    memory_.QueueUpdates(std::span(updates).first(count));
    pending_ += count;
    queued_meanwhile_ = true;
    if (pending_ > GpuReplay::kMaxQueued / 4) TakeReports();  // long before one is waited for
  }

  // Those that are there.
  void TakeReports() {
    while (const auto report = memory_.NextReport(/*wait=*/false)) Take(*report);
  }

  // The i-th of several.
  GpuUpdate Draw(int i, double importance_exponent) {
    ReplayBuffer& buffer = parts_.experience.remote_buffer();
    const std::size_t batch = probabilities_.size();
    const auto mine = [&](auto& list) { return std::span(list).subspan(i * batch, batch); };
    if (memory_.spec().draws) {
      buffer.DrawUniforms(mine(uniforms_));
      return {.importance_exponent = importance_exponent, .uniforms = mine(uniforms_)};
    }
    buffer.Sample({.importance_exponent = importance_exponent,
                   .normalization = parts_.config.replay.weight_normalization},
                  {.ids = mine(ids_), .probabilities = probabilities_, .weights = mine(weights_)});
    return {
        .importance_exponent = importance_exponent, .ids = mine(ids_), .weights = mine(weights_)};
  }

  void Take(const GpuUpdateReport& report) {
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

  void Count(const GpuUpdateReport& report) {
    UpdateCounts counts;
    if (memory_.spec().rule != PriorityRule::kUniform) {
      for (const Priority& priority : report.priorities) {
        ++(ToStoredPriority(priority.value) ? counts.updated : counts.invalid);
      }
      parts_.window.refused_priorities += static_cast<double>(counts.invalid);
    }
    const std::size_t drawn = memory_.spec().draws ? report.ids.size() : 0;  // else counted
    parts_.experience.remote_buffer().CountRemote(drawn, report.massless ? drawn : 0, counts);
  }

  const LearningParts parts_;
  GpuReplay& memory_;
  std::size_t pending_ = 0;            // queued and not taken
  bool queued_meanwhile_ = false;      // updates, beside the decisions under way
  std::uint64_t followed_frames_ = 0;  // up to here
  std::vector<double> probabilities_;  // [batch]
  // [GpuReplay::kMostUpdates, batch]: of the draws of updates.
  std::vector<double> uniforms_;
  std::vector<std::uint64_t> ids_;
  std::vector<float> weights_;
  std::vector<std::uint32_t> slots_;  // [environment, depth]; none if observations are whole
  std::vector<float> values_;         // [environment, action]
};

}  // namespace

std::unique_ptr<ExperienceLearner> MakeGpuExperienceLearner(const LearningParts& parts,
                                                            GpuReplay& memory) {
  return std::make_unique<GpuExperienceLearner>(parts, memory);
}

}  // namespace uper
