#include "uper/tabular/quantile_ensemble.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "uper/base/check.h"
#include "uper/core/moments.h"
#include "uper/core/quantile.h"

namespace uper {

QuantileEnsemble::QuantileEnsemble(EnsembleShape shape)
    : shape_(shape),
      midpoints_(QuantileMidpoints(shape.quantiles)),
      theta_(shape.members * shape.quantiles) {
  UPER_CHECK(shape.members >= 1 && shape.members <= 64, "an update mask has 64 bits");
  UPER_CHECK(shape.quantiles >= 1, "a distribution needs a quantile");
}

void QuantileEnsemble::StartRandom(double low, double high, RandomStream& stream) {
  for (std::size_t k = 0; k < shape_.members; ++k) {
    for (double& value : member(k)) value = low + (high - low) * stream.Uniform();
    std::sort(member(k).begin(), member(k).end());
  }
}

void QuantileEnsemble::StartIdentical(double low, double high) {
  for (std::size_t k = 0; k < shape_.members; ++k) {
    for (std::size_t i = 0; i < shape_.quantiles; ++i) {
      member(k)[i] = low + (high - low) * QuantileMidpoint(i, shape_.quantiles);
    }
  }
}

void QuantileEnsemble::Update(double sample, double step, std::uint64_t mask) {
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    QuantileRegressionStep(member(std::countr_zero(rest)), midpoints_, sample, step);
  }
}

Uncertainty QuantileEnsemble::Decompose(double target) const {
  return DecomposeScalarTarget<double>(theta_, shape_, target);
}

double QuantileEnsemble::TdError(double target) const {
  double sum = 0;
  for (std::size_t k = 0; k < shape_.members; ++k) sum += std::abs(target - MemberMean(k));
  return sum / static_cast<double>(shape_.members);
}

double QuantileEnsemble::Mean() const {
  return LaneSum(theta_) / static_cast<double>(theta_.size());
}

double QuantileEnsemble::MeanMemberVariance() const {
  double sum = 0;
  for (std::size_t k = 0; k < shape_.members; ++k) {
    sum += ComputeMoments(theta().subspan(k * shape_.quantiles, shape_.quantiles)).variance;
  }
  return sum / static_cast<double>(shape_.members);
}

double QuantileEnsemble::MemberMean(std::size_t k) const {
  const auto row = theta().subspan(k * shape_.quantiles, shape_.quantiles);
  return LaneSum(row) / static_cast<double>(shape_.quantiles);
}

}  // namespace uper
