#include "uper/cli/video/decision_view.h"

#include <cmath>

#include "uper/base/check.h"
#include "uper/core/categorical.h"
#include "uper/core/moments.h"
#include "uper/core/priority.h"
#include "uper/nn/head_values.h"

namespace uper::cli {
namespace {

// Fills in the members' distributions of one action, and E and A. `logits` are [member, atom].
void DescribeCategorical(const LossSpec& loss, EnsembleShape shape, std::span<const float> logits,
                         double target, Decision& decision) {
  std::vector<float> probabilities(logits.size());
  decision.quantiles.resize(logits.size());
  for (std::size_t k = 0; k < shape.members; ++k) {
    const auto row = [&](auto values) {
      return values.subspan(k * shape.quantiles, shape.quantiles);
    };
    Softmax(row(logits), row(std::span(probabilities)));
    CategoricalQuantiles<float>(loss.support, row(std::span(probabilities)),
                                row(std::span(decision.quantiles)));
  }
  switch (loss.categorical_uncertainty) {
    case CategoricalUncertainty::kTotalVariance:
      decision.uncertainty =
          DecomposeCategoricalVariance<float>(loss.support, probabilities, shape.members, target);
      return;
    case CategoricalUncertainty::kAuthors:
      decision.uncertainty =
          DecomposeCategoricalProducts<float>(loss.support, probabilities, shape.members, target);
      return;
    case CategoricalUncertainty::kQuantiles:
      decision.uncertainty = DecomposeScalarTarget<float>(decision.quantiles, shape, target);
      return;
  }
}

}  // namespace

Decision DescribeDecision(const LearnerSpec& spec, std::span<const float> outputs, int action,
                          double aleatoric_floor) {
  const EnsembleShape shape{.members = static_cast<std::size_t>(spec.network.members),
                            .quantiles = static_cast<std::size_t>(spec.network.outputs)};
  const std::size_t size = shape.members * shape.quantiles;
  const std::size_t actions = spec.network.actions;
  UPER_CHECK(outputs.size() == actions * size, "outputs must be [action, member, output]");
  UPER_CHECK(0 <= action && action < spec.network.actions, "an action out of range");
  Decision decision{.action = action};
  std::vector<double> values(shape.members);
  for (std::size_t a = 0; a < actions; ++a) {
    for (std::size_t k = 0; k < shape.members; ++k) {
      values[k] =
          MemberValue(spec.loss, outputs.subspan(a * size + k * shape.quantiles, shape.quantiles));
    }
    const Moments moments = ComputeMoments<double>(values);
    decision.q.push_back(moments.mean);
    decision.spread.push_back(std::sqrt(moments.variance));
  }
  const std::span<const float> taken = outputs.subspan(action * size, size);
  if (spec.loss.head == HeadKind::kCategorical) {
    DescribeCategorical(spec.loss, shape, taken, decision.q[action], decision);
  } else {
    decision.quantiles.assign(taken.begin(), taken.end());
    decision.uncertainty = DecomposeScalarTarget(taken, shape, decision.q[action]);
  }
  decision.info_gain =
      InfoGain(decision.uncertainty.epistemic, decision.uncertainty.aleatoric, aleatoric_floor);
  return decision;
}

}  // namespace uper::cli
