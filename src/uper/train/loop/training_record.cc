#include "uper/train/loop/training_record.h"

#include <algorithm>
#include <cmath>

#include "uper/core/importance_weights.h"

namespace uper {

void TrainingRecord::Take(const UpdateReport& report) {
  clock.Move(report.sampling_seconds, &TimeBreakdown::learning, &TimeBreakdown::sampling);
  window.loss.Add(report.loss);
  window.grad_norm.Add(report.gradient_norm);
  window.effective_sample_size.Add(EffectiveSampleSize(report.weights));
  for (std::size_t i = 0; i < report.priorities.size(); ++i) {
    const Priority& priority = report.priorities[i];
    const Uncertainty& uncertainty = report.uncertainty[i];
    if (std::isfinite(priority.value)) {
      window.priority.Add(priority.value);
      window.priority_max = std::max(window.priority_max, priority.value);
    }
    window.td_error.Add(report.td_error[i]);
    window.epistemic.Add(uncertainty.epistemic);
    window.aleatoric.Add(uncertainty.aleatoric);
    window.target_distance.Add(uncertainty.target_distance_sq);
    window.floored.Add(priority.floored ? 1 : 0);
    window.capped.Add(priority.capped ? 1 : 0);
    window.noisy_draws.Add(report.noisy[i] != 0 ? 1 : 0);
  }
  window.refused_priorities += static_cast<double>(report.refused_priorities);
}

}  // namespace uper
