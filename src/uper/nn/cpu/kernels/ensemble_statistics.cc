#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/ensemble_statistics.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "uper/nn/cpu/kernels/ensemble_statistics.h"
#include "uper/nn/cpu/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

// Sum over t < count, in eight partial sums that are added as a fixed tree. term(t, lanes) returns
// a vector with the terms t to t + lanes - 1.
template <typename Term>
HWY_INLINE double SumTerms(int count, const Term& term) {
  WideVec sums[kWideVectors];
  for (WideVec& sum : sums) sum = hn::Zero(WideTag());
  int t = 0;
  for (; t + kWideSums <= count; t += kWideSums) {
#pragma GCC unroll 8
    for (int v = 0; v < kWideVectors; ++v) {
      sums[v] = hn::Add(sums[v], term(t + v * kWideLanes, kWideLanes));
    }
  }
  for (int v = 0; t < count; ++v, t += kWideLanes) {
    const int lanes = std::min(kWideLanes, count - t);
    const auto mask = hn::FirstN(WideTag(), static_cast<size_t>(lanes));
    sums[v] = hn::Add(sums[v], hn::IfThenElseZero(mask, term(t, lanes)));
  }
  return SumOfWide(sums);
}

HWY_INLINE WideVec Square(WideVec x) { return hn::Mul(x, x); }

double RowSum(const float* row, int count) {
  return SumTerms(count, [&](int t, int lanes) HWY_ATTR { return LoadWide(row + t, lanes); });
}

// Sum of squared distances from `mean`.
double RowSquares(const float* row, int count, double mean) {
  const WideVec center = hn::Set(WideTag(), mean);
  return SumTerms(count, [&](int t, int lanes) HWY_ATTR {
    return Square(hn::Sub(LoadWide(row + t, lanes), center));
  });
}

void QuantileMeansImpl(const float* values, int members, int quantiles, double* means) {
  for (int k = 0; k < members; ++k, values += quantiles)
    means[k] = RowSum(values, quantiles) / quantiles;
}

// columns[t] = mean over members of theta[k, t]. A sum of equal floats is exact in double, so equal
// members have no deviation.
void ColumnMeans(const float* theta, int members, int quantiles, double* columns) {
  const WideVec count = hn::Set(WideTag(), members);
  for (int t = 0; t < quantiles; t += kWideLanes) {
    const int lanes = std::min(kWideLanes, quantiles - t);
    WideVec sum = hn::Zero(WideTag());
    for (int k = 0; k < members; ++k) {
      sum = hn::Add(sum, LoadWide(theta + k * quantiles + t, lanes));
    }
    StoreWide(hn::Div(sum, count), lanes, columns + t);
  }
}

// Computes mean, epistemic, aleatoric and total. Leaves the mean quantiles over members in
// `columns`.
Uncertainty DecomposeEnsembleImpl(const float* theta, int members, int quantiles, double* columns) {
  ColumnMeans(theta, members, quantiles, columns);
  const WideVec origin =
      hn::Set(WideTag(), columns[0]);  // so that equal quantiles have no variance
  const double from_origin =
      SumTerms(quantiles, [&](int t, int lanes)
                              HWY_ATTR { return hn::Sub(LoadWide(columns + t, lanes), origin); }) /
      quantiles;
  const WideVec center = hn::Set(WideTag(), from_origin);
  const double spread = SumTerms(quantiles, [&](int t, int lanes) HWY_ATTR {
    return Square(hn::Sub(hn::Sub(LoadWide(columns + t, lanes), origin), center));
  });
  double disagreement = 0;
  for (int k = 0; k < members; ++k) {
    const float* row = theta + k * quantiles;
    disagreement += SumTerms(quantiles, [&](int t, int lanes) HWY_ATTR {
      return Square(hn::Sub(LoadWide(row + t, lanes), LoadWide(columns + t, lanes)));
    });
  }
  Uncertainty result;
  result.mean = columns[0] + from_origin;
  result.epistemic = disagreement / (1.0 * members * quantiles);
  result.aleatoric = spread / quantiles;
  result.total = result.epistemic + result.aleatoric;
  return result;
}

// Sum over members of the variation over tau of theta_k,tau - columns_tau: how much the members
// differ in the shape of their distributions.
double ShapeDisagreementImpl(const float* theta, int members, int quantiles,
                             const double* columns) {
  double squares = 0;
  for (int k = 0; k < members; ++k, theta += quantiles) {
    const auto deviation = [&](int t, int lanes) HWY_ATTR {
      return hn::Sub(LoadWide(theta + t, lanes), LoadWide(columns + t, lanes));
    };
    const WideVec mean = hn::Set(WideTag(), SumTerms(quantiles, deviation) / quantiles);
    squares += SumTerms(quantiles, [&](int t, int lanes) HWY_ATTR {
      return Square(hn::Sub(deviation(t, lanes), mean));
    });
  }
  return squares;
}

// Sum over members of the variation of their quantiles around `means`.
double VariationImpl(const float* values, int members, int quantiles, const double* means) {
  double squares = 0;
  for (int k = 0; k < members; ++k)
    squares += RowSquares(values + k * quantiles, quantiles, means[k]);
  return squares;
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "uper/base/check.h"

namespace uper::cpu {
namespace {

HWY_EXPORT(QuantileMeansImpl);
HWY_EXPORT(DecomposeEnsembleImpl);
HWY_EXPORT(ShapeDisagreementImpl);
HWY_EXPORT(VariationImpl);

Uncertainty DecomposeEnsemble(std::span<const float> theta, EnsembleShape shape,
                              std::span<double> columns) {
  UPER_CHECK(!theta.empty() && theta.size() == shape.members * shape.quantiles,
             "theta must be [members, quantiles]");
  UPER_CHECK(columns.size() == shape.quantiles, "scratch of one row is needed");
  return HWY_DYNAMIC_DISPATCH(DecomposeEnsembleImpl)(theta.data(), static_cast<int>(shape.members),
                                                     static_cast<int>(shape.quantiles),
                                                     columns.data());
}

}  // namespace

void QuantileMeans(std::span<const float> values, EnsembleShape shape, std::span<double> means) {
  UPER_CHECK(values.size() == shape.members * shape.quantiles && means.size() == shape.members,
             "values must be [members, quantiles], means [members]");
  HWY_DYNAMIC_DISPATCH(QuantileMeansImpl)
  (values.data(), static_cast<int>(shape.members), static_cast<int>(shape.quantiles), means.data());
}

Uncertainty DecomposeTargetQuantilesSimd(std::span<const float> theta,
                                         std::span<const float> target_theta, EnsembleShape shape,
                                         double reward, double discount,
                                         std::span<const double> theta_means,
                                         std::span<const double> target_means,
                                         std::span<double> columns) {
  Uncertainty result = DecomposeEnsemble(theta, shape, columns);
  UPER_CHECK(target_theta.size() == theta.size(), "theta and target_theta must have one shape");
  UPER_CHECK(theta_means.size() == shape.members && target_means.size() == shape.members,
             "one mean a member");
  const int members = static_cast<int>(shape.members);
  const int quantiles = static_cast<int>(shape.quantiles);
  double gaps = 0;  // gap of member k: mean T_k - mean theta_k
  double gap_squares = 0;
  for (int k = 0; k < members; ++k) {
    const double gap = (reward + discount * target_means[k]) - theta_means[k];
    gaps += gap;
    gap_squares += gap * gap;
  }
  const double target_variation = HWY_DYNAMIC_DISPATCH(VariationImpl)(
      target_theta.data(), members, quantiles, target_means.data());
  const double shapes =
      HWY_DYNAMIC_DISPATCH(ShapeDisagreementImpl)(theta.data(), members, quantiles, columns.data());
  const double count = static_cast<double>(theta.size());
  const double mean_gap = gaps / members;
  result.target_distance_sq = mean_gap * mean_gap;
  result.epistemic_delta =
      discount * discount * (target_variation / count) + gap_squares / members + shapes / count;
  result.total_delta = result.epistemic_delta + result.aleatoric;
  return result;
}

Uncertainty DecomposeScalarTargetSimd(std::span<const float> theta, EnsembleShape shape,
                                      double target, std::span<double> columns) {
  Uncertainty result = DecomposeEnsemble(theta, shape, columns);
  const double distance = target - result.mean;
  result.target_distance_sq = distance * distance;
  result.epistemic_delta = result.target_distance_sq + result.epistemic;
  result.total_delta = result.epistemic_delta + result.aleatoric;
  return result;
}

}  // namespace uper::cpu
#endif  // HWY_ONCE
