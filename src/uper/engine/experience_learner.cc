#include "uper/engine/experience_learner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "uper/core/importance_weights.h"

namespace uper {

void AddTo(MetricsWindow& window, const LearnedBatch& batch) {
  window.loss.Add(batch.loss);
  window.grad_norm.Add(batch.gradient_norm);
  window.effective_sample_size.Add(EffectiveSampleSize(batch.weights));
  for (std::size_t i = 0; i < batch.priorities.size(); ++i) {
    const Priority& priority = batch.priorities[i];
    const Uncertainty& uncertainty = batch.uncertainty[i];
    if (std::isfinite(priority.value)) {
      window.priority.Add(priority.value);
      window.priority_max = std::max(window.priority_max, priority.value);
    }
    window.td_error.Add(batch.td_error[i]);
    window.epistemic.Add(uncertainty.epistemic);
    window.aleatoric.Add(uncertainty.aleatoric);
    window.target_distance.Add(uncertainty.target_distance_sq);
    window.floored.Add(priority.floored ? 1 : 0);
    window.capped.Add(priority.capped ? 1 : 0);
    window.noisy_draws.Add(batch.noisy[i] != 0 ? 1 : 0);
  }
}

void CopyTargetIfDue(const RunConfig& config, Learner& learner) {
  const std::int64_t period = config.agent.target_period_updates;
  if (period > 0 && learner.updates() % period == 0) learner.CopyTarget();
}

std::int64_t UpdatesToNextCopy(const RunConfig& config, Learner& learner) {
  const std::int64_t period = config.agent.target_period_updates;
  return period > 0 ? period - learner.updates() % period
                    : std::numeric_limits<std::int64_t>::max();
}

void ThrowWithBatch(ErrorKind kind, const std::string& message,
                    std::span<const std::uint64_t> ids) {
  std::string text = message + "; transitions of the batch:";
  for (const std::uint64_t id : ids) text.append(" ").append(std::to_string(id));
  throw Error(kind, text);
}

}  // namespace uper
