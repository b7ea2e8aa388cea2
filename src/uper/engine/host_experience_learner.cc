#include <vector>

#include "uper/engine/experience_learner.h"
#include "uper/replay/replay_batch.h"

namespace uper {
namespace {

// Draws and gathers on the host, and waits for every update.
class HostExperienceLearner final : public ExperienceLearner {
 public:
  explicit HostExperienceLearner(const LearningParts& parts)
      : parts_(parts),
        batch_(parts.config.replay.batch_size,
               parts.experience.current().size() / parts.config.environments),
        priorities_(parts.config.replay.batch_size),
        values_(parts.config.replay.batch_size),
        noisy_(parts.config.replay.batch_size) {}

  void ActionValues(std::span<const Sight>, std::span<float> q,
                    const std::function<void()>&) override {
    parts_.learner.ActionValues(parts_.experience.current(), parts_.config.environments, q);
  }

  void Learn(int updates, double importance_exponent) override {
    for (int i = 0; i < updates; ++i) LearnOnce(importance_exponent);
  }
  bool queues() const override { return false; }

  void Finish() override {}
  void BringHome() override {}
  void Restored() override {}

 private:
  void LearnOnce(double importance_exponent) {
    {
      const Stopwatch watch(parts_.times.sampling);
      parts_.experience.Sample({.importance_exponent = importance_exponent,
                                .normalization = parts_.config.replay.weight_normalization},
                               batch_.view());
    }
    const Stopwatch watch(parts_.times.learning);
    WritePriorities(Update());
    CopyTargetIfDue(parts_.config, parts_.learner);
  }

  LearnerOutput Update() try {
    return parts_.learner.Update({.s_tm1 = batch_.s_tm1,
                                  .s_t = batch_.s_t,
                                  .a_tm1 = batch_.a_tm1,
                                  .r_t = batch_.r_t,
                                  .discount_t = batch_.discount_t,
                                  .weights = batch_.weights,
                                  .masks = batch_.masks});
  } catch (const Error& error) {
    ThrowWithBatch(error.kind(), error.what(), batch_.ids);
  }

  void WritePriorities(const LearnerOutput& output) {
    const AgentConfig& agent = parts_.config.agent;
    const PriorityLimits limits{.aleatoric_floor = agent.aleatoric_floor,
                                .cap = agent.priority_cap};
    for (std::size_t i = 0; i < priorities_.size(); ++i) {
      priorities_[i] = ComputePriority(
          agent.priority, {.uncertainty = output.uncertainty[i], .td_error = output.td_error[i]},
          limits);
      values_[i] = priorities_[i].value;
      noisy_[i] = parts_.experience.IsNoisy(batch_.ids[i]) ? 1 : 0;
    }
    AddTo(parts_.window, {.loss = output.loss,
                          .gradient_norm = output.gradient_norm,
                          .weights = batch_.weights,
                          .td_error = output.td_error,
                          .uncertainty = output.uncertainty,
                          .priorities = priorities_,
                          .noisy = noisy_});
    if (agent.priority == PriorityRule::kUniform) return;
    const UpdateCounts counts = parts_.experience.SetPriorities(batch_.ids, values_);
    parts_.window.refused_priorities += static_cast<double>(counts.invalid);
  }

  const LearningParts parts_;
  ReplayBatch batch_;
  std::vector<Priority> priorities_;
  std::vector<double> values_;
  std::vector<std::uint8_t> noisy_;
};

}  // namespace

std::unique_ptr<ExperienceLearner> MakeHostExperienceLearner(const LearningParts& parts) {
  return std::make_unique<HostExperienceLearner>(parts);
}

}  // namespace uper
