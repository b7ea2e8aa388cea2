#include "uper/nn/cpu/sample_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "uper/core/ensemble_statistics.h"
#include "uper/nn/cpu/kernels/quantile_huber.h"
#include "uper/nn/head_values.h"

namespace uper::cpu {
namespace {

template <typename T>
std::span<T> Member(std::span<T> outputs, std::size_t k, EnsembleShape shape) {
  return outputs.subspan(k * shape.quantiles, shape.quantiles);
}
std::span<float> Member(std::vector<float>& outputs, std::size_t k, EnsembleShape shape) {
  return Member(std::span(outputs), k, shape);
}

bool Learns(const SampleInputs& inputs, std::size_t k) { return (inputs.mask >> k & 1) != 0; }

double ExpectedAtom(const AtomSupport& support, std::span<const float> probabilities) {
  double sum = 0;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    sum += double{probabilities[j]} * support.Atom(j);
  }
  return sum;
}

// Fills scratch.online_means and target_means; for categorical heads also the probabilities.
void MemberMeans(const LossSpec& spec, EnsembleShape shape, const SampleInputs& inputs,
                 LossScratch& scratch) {
  if (spec.head != HeadKind::kCategorical) {
    QuantileMeans<float>(inputs.online, shape, scratch.online_means);
    QuantileMeans<float>(inputs.target, shape, scratch.target_means);
    return;
  }
  for (std::size_t k = 0; k < shape.members; ++k) {
    const auto online = Member(scratch.online_values, k, shape);
    const auto target = Member(scratch.target_values, k, shape);
    Softmax(Member(inputs.online, k, shape), online);
    Softmax(Member(inputs.target, k, shape), target);
    scratch.online_means[k] = ExpectedAtom(spec.support, online);
    scratch.target_means[k] = ExpectedAtom(spec.support, target);
  }
}

// L = w delta^2 / 2 with delta = r + d theta' - theta; the gradient's w delta is bounded.
double ScalarLoss(const LossSpec& spec, const SampleInputs& inputs, double delta, float& d_online) {
  const double weighted = double{inputs.weight} * delta;
  const double bound = spec.td_gradient_bound;
  const double bounded = bound > 0 ? std::clamp(weighted, -bound, bound) : weighted;
  d_online = static_cast<float>(-inputs.scale * bounded);
  return 0.5 * delta * delta;
}

double QuantileLoss(const LossSpec& spec, const SampleInputs& inputs, std::span<const float> online,
                    std::span<const float> target, LossScratch& scratch,
                    std::span<float> d_online) {
  for (std::size_t j = 0; j < target.size(); ++j) {
    scratch.targets[j] = inputs.r_t + inputs.discount_t * target[j];
  }
  const double loss =
      QuantileHuberSimd(online, scratch.targets, static_cast<float>(spec.huber_kappa), d_online);
  const float factor = static_cast<float>(inputs.scale * double{inputs.weight});
  for (float& derivative : d_online) derivative *= factor;
  return loss;
}

// Cross-entropy of the projected target and the softmax of the member. Its derivative with respect
// to the logits is softmax - projected.
double CategoricalLoss(const LossSpec& spec, const SampleInputs& inputs,
                       std::span<const float> logits, std::span<const float> probabilities,
                       std::span<const float> target_probabilities, LossScratch& scratch,
                       std::span<float> d_online) {
  if (!std::isfinite(inputs.r_t) || !std::isfinite(inputs.discount_t)) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    std::fill(d_online.begin(), d_online.end(), kNan);
    return double{kNan};
  }
  ProjectCategorical<float>(spec.support, target_probabilities, double{inputs.r_t},
                            double{inputs.discount_t}, scratch.targets);
  double largest = logits[0];
  for (const float logit : logits) largest = std::max(largest, double{logit});
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  const double log_sum = largest + std::log(sum);
  const double factor = inputs.scale * double{inputs.weight};
  double loss = 0;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    loss += double{scratch.targets[j]} * (log_sum - double{logits[j]});
    d_online[j] =
        static_cast<float>(factor * (double{probabilities[j]} - double{scratch.targets[j]}));
  }
  return loss;
}

// Returns the loss of one member without weight and scale; d_online includes both.
double MemberLoss(const LossSpec& spec, EnsembleShape shape, const SampleInputs& inputs,
                  std::size_t k, double delta, LossScratch& scratch, std::span<float> d_online) {
  switch (spec.head) {
    case HeadKind::kScalar:
      return ScalarLoss(spec, inputs, delta, d_online[0]);
    case HeadKind::kQuantile:
      return QuantileLoss(spec, inputs, Member(inputs.online, k, shape),
                          Member(inputs.target, k, shape), scratch, d_online);
    case HeadKind::kCategorical:
      return CategoricalLoss(spec, inputs, Member(inputs.online, k, shape),
                             Member(scratch.online_values, k, shape),
                             Member(scratch.target_values, k, shape), scratch, d_online);
  }
  return 0;
}

// REQUIRES: scratch.online_means and target_means are those of online and target.
Uncertainty QuantileUncertainty(const LossSpec& spec, EnsembleShape shape,
                                const SampleInputs& inputs, std::span<const float> online,
                                std::span<const float> target, LossScratch& scratch) {
  const double r_t = double{inputs.r_t};
  const double discount_t = double{inputs.discount_t};
  if (spec.target_form == TargetForm::kAtari) {
    return DecomposeTargetQuantilesSimd<float>(online, target, shape, r_t, discount_t,
                                               scratch.online_means, scratch.target_means,
                                               scratch.columns);
  }
  double next_value = 0;
  for (const double mean : scratch.target_means) next_value += mean;
  next_value /= static_cast<double>(shape.members);
  return DecomposeScalarTargetSimd<float>(online, shape, r_t + discount_t * next_value,
                                          scratch.columns);
}

Uncertainty CategoricalUncertaintyOf(const LossSpec& spec, EnsembleShape shape,
                                     const SampleInputs& inputs, double mean_target,
                                     LossScratch& scratch) {
  const std::span<const float> online = scratch.online_values;
  switch (spec.categorical_uncertainty) {
    case CategoricalUncertainty::kTotalVariance:
      return DecomposeCategoricalVariance(spec.support, online, shape.members, mean_target);
    case CategoricalUncertainty::kAuthors:
      return DecomposeCategoricalProducts(spec.support, online, shape.members, mean_target);
    case CategoricalUncertainty::kQuantiles:
      break;
  }
  for (std::size_t k = 0; k < shape.members; ++k) {
    CategoricalQuantiles<float>(spec.support, Member(scratch.online_values, k, shape),
                                Member(scratch.online_quantiles, k, shape));
    CategoricalQuantiles<float>(spec.support, Member(scratch.target_values, k, shape),
                                Member(scratch.target_quantiles, k, shape));
  }
  // The mean of the target must come from its quantiles, too. Quantiles spread the mass of an atom
  // over the interval below it, so means of atoms and of quantiles differ by half an atom.
  QuantileMeans<float>(scratch.online_quantiles, shape, scratch.online_means);
  QuantileMeans<float>(scratch.target_quantiles, shape, scratch.target_means);
  return QuantileUncertainty(spec, shape, inputs, scratch.online_quantiles,
                             scratch.target_quantiles, scratch);
}

// Over all members, masked or not, because a priority uses all of them.
struct MemberSums {
  double mean_target = 0;
  double absolute_errors = 0;
  double losses = 0;  // masked members have one only if the TD error needs it
};

double TdErrorOf(const LossSpec& spec, const MemberSums& sums, double members) {
  if (spec.td_priority == TdErrorKind::kMeanAbsolute) return sums.absolute_errors / members;
  const double loss = sums.losses / members;
  return spec.head == HeadKind::kCategorical ? std::min(loss, kLargestLossPriority) : loss;
}

}  // namespace

LossScratch::LossScratch(EnsembleShape shape)
    : targets(shape.quantiles),
      online_means(shape.members),
      target_means(shape.members),
      columns(shape.quantiles),
      online_values(shape.members * shape.quantiles),
      target_values(online_values.size()),
      online_quantiles(online_values.size()),
      target_quantiles(online_values.size()) {}

SampleOutputs ComputeSampleLoss(const LossSpec& spec, EnsembleShape shape,
                                const SampleInputs& inputs, LossScratch& scratch,
                                std::span<float> d_online) {
  SampleOutputs outputs;
  MemberSums sums;
  const double members = static_cast<double>(shape.members);
  MemberMeans(spec, shape, inputs, scratch);
  for (std::size_t k = 0; k < shape.members; ++k) {
    const double target_value =
        double{inputs.r_t} + double{inputs.discount_t} * scratch.target_means[k];
    const double delta = target_value - scratch.online_means[k];
    sums.mean_target += target_value / members;
    sums.absolute_errors += std::abs(delta);

    const auto d_member = Member(d_online, k, shape);
    const bool learns = Learns(inputs, k);
    if (!learns && spec.td_priority == TdErrorKind::kMeanAbsolute) {
      std::fill(d_member.begin(), d_member.end(), 0.0F);
      continue;
    }
    const double loss = MemberLoss(spec, shape, inputs, k, delta, scratch, d_member);
    sums.losses += loss;
    if (learns) {
      outputs.loss += inputs.scale * double{inputs.weight} * loss;
    } else {
      std::fill(d_member.begin(), d_member.end(), 0.0F);
    }
  }
  outputs.td_error = TdErrorOf(spec, sums, members);
  outputs.uncertainty =
      spec.head == HeadKind::kCategorical
          ? CategoricalUncertaintyOf(spec, shape, inputs, sums.mean_target, scratch)
          : QuantileUncertainty(spec, shape, inputs, inputs.online, inputs.target, scratch);
  return outputs;
}

}  // namespace uper::cpu
