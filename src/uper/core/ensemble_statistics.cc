#include "uper/core/ensemble_statistics.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "uper/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uper {
namespace {

// No version may fuse a multiplication and an addition, which rounds once instead of twice. The
// flag -ffp-contract=off of all sources sees to it.
#if defined(__x86_64__)
namespace avx512 {
#define UPER_INSTRUCTIONS "AVX-512"
#define UPER_TARGET __attribute__((target("avx512f")))
#define UPER_LANES 8
#include "uper/core/ensemble_statistics_inl.h"
}  // namespace avx512

namespace avx2 {
#define UPER_INSTRUCTIONS "AVX2"
#define UPER_TARGET __attribute__((target("avx2")))
#define UPER_LANES 4
#include "uper/core/ensemble_statistics_inl.h"
}  // namespace avx2
#endif

namespace portable {
#define UPER_INSTRUCTIONS "portable"
#define UPER_TARGET
#define UPER_LANES 2
#include "uper/core/ensemble_statistics_inl.h"
}  // namespace portable

template <typename Real>
constexpr EnsembleKernels<Real> kAllKernels[] = {
#if defined(__x86_64__)
    avx512::kKernels<Real>,
    avx2::kKernels<Real>,
#endif
    portable::kKernels<Real>,
};

// The place in kAllKernels of the best version that this machine can run. It can run all after it.
std::size_t FindBest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 0;
  return __builtin_cpu_supports("avx2") ? 1 : 2;
#else
  return 0;
#endif
}

template <typename Real>
const EnsembleKernels<Real>& BestKernels() {
  return RunnableEnsembleKernels<Real>().front();
}

void CheckEnsemble(std::size_t size, EnsembleShape shape, std::size_t samples = 1) {
  UPER_CHECK(shape.members > 0 && shape.quantiles > 0, "an ensemble has members and quantiles");
  UPER_CHECK(size == samples * shape.members * shape.quantiles,
             "theta must be [members, quantiles] for each sample");
}

}  // namespace

template <typename Real>
std::span<const EnsembleKernels<Real>> RunnableEnsembleKernels() {
  static const std::size_t best = FindBest();
  return std::span(kAllKernels<Real>).subspan(best);
}

template <typename Real>
void QuantileMeans(std::span<const Real> values, EnsembleShape shape, std::span<double> means) {
  UPER_CHECK(values.size() == shape.members * shape.quantiles && means.size() == shape.members,
             "values must be [members, quantiles], means [members]");
  BestKernels<Real>().quantile_means(values.data(), shape, means.data());
}

template <typename Real>
Uncertainty DecomposeTargetQuantilesSimd(std::span<const Real> theta,
                                         std::span<const Real> target_theta, EnsembleShape shape,
                                         double reward, double discount,
                                         std::span<const double> theta_means,
                                         std::span<const double> target_means,
                                         std::span<double> columns) {
  CheckEnsemble(theta.size(), shape);
  UPER_CHECK(target_theta.size() == theta.size(), "theta and target_theta must have one shape");
  UPER_CHECK(theta_means.size() == shape.members && target_means.size() == shape.members,
             "one mean per member");
  UPER_CHECK(columns.size() == shape.quantiles, "scratch of one row is needed");
  return BestKernels<Real>().decompose_target(theta.data(), target_theta.data(), shape, reward,
                                              discount, theta_means.data(), target_means.data(),
                                              columns.data());
}

template <typename Real>
Uncertainty DecomposeScalarTargetSimd(std::span<const Real> theta, EnsembleShape shape,
                                      double target, std::span<double> columns) {
  CheckEnsemble(theta.size(), shape);
  UPER_CHECK(columns.size() == shape.quantiles, "scratch of one row is needed");
  const Uncertainty u = BestKernels<Real>().decompose(theta.data(), shape, columns.data());
  return WithTarget(u.mean, u.epistemic, u.aleatoric, target);
}

template <typename Real>
void DecomposeTargetQuantilesBatch(std::span<const Real> theta, std::span<const Real> target_theta,
                                   EnsembleShape shape, std::span<const double> rewards,
                                   std::span<const double> discounts, std::span<Uncertainty> out) {
  CheckEnsemble(theta.size(), shape, out.size());
  UPER_CHECK(target_theta.size() == theta.size(), "theta and target_theta must have one shape");
  UPER_CHECK(rewards.size() == out.size() && discounts.size() == out.size(),
             "one reward and one discount per sample");
  const auto& kernels = BestKernels<Real>();
  const std::size_t size = shape.members * shape.quantiles;
  std::vector<double> columns(shape.quantiles);
  for (std::size_t b = 0; b < out.size(); ++b) {
    out[b] =
        kernels.decompose_target(theta.data() + b * size, target_theta.data() + b * size, shape,
                                 rewards[b], discounts[b], nullptr, nullptr, columns.data());
  }
}

template <typename Real>
void DecomposeScalarTargetBatch(std::span<const Real> theta, EnsembleShape shape,
                                std::span<const double> targets, std::span<Uncertainty> out) {
  CheckEnsemble(theta.size(), shape, out.size());
  UPER_CHECK(targets.size() == out.size(), "one target per sample");
  const auto& kernels = BestKernels<Real>();
  const std::size_t size = shape.members * shape.quantiles;
  std::vector<double> columns(shape.quantiles);
  for (std::size_t b = 0; b < out.size(); ++b) {
    const Uncertainty u = kernels.decompose(theta.data() + b * size, shape, columns.data());
    out[b] = WithTarget(u.mean, u.epistemic, u.aleatoric, targets[b]);
  }
}

template std::span<const EnsembleKernels<float>> RunnableEnsembleKernels();
template void QuantileMeans(std::span<const float>, EnsembleShape, std::span<double>);
template Uncertainty DecomposeTargetQuantilesSimd(std::span<const float>, std::span<const float>,
                                                  EnsembleShape, double, double,
                                                  std::span<const double>, std::span<const double>,
                                                  std::span<double>);
template Uncertainty DecomposeScalarTargetSimd(std::span<const float>, EnsembleShape, double,
                                               std::span<double>);
template void DecomposeTargetQuantilesBatch(std::span<const float>, std::span<const float>,
                                            EnsembleShape, std::span<const double>,
                                            std::span<const double>, std::span<Uncertainty>);
template void DecomposeScalarTargetBatch(std::span<const float>, EnsembleShape,
                                         std::span<const double>, std::span<Uncertainty>);

template std::span<const EnsembleKernels<double>> RunnableEnsembleKernels();
template void QuantileMeans(std::span<const double>, EnsembleShape, std::span<double>);
template Uncertainty DecomposeTargetQuantilesSimd(std::span<const double>, std::span<const double>,
                                                  EnsembleShape, double, double,
                                                  std::span<const double>, std::span<const double>,
                                                  std::span<double>);
template Uncertainty DecomposeScalarTargetSimd(std::span<const double>, EnsembleShape, double,
                                               std::span<double>);
template void DecomposeTargetQuantilesBatch(std::span<const double>, std::span<const double>,
                                            EnsembleShape, std::span<const double>,
                                            std::span<const double>, std::span<Uncertainty>);
template void DecomposeScalarTargetBatch(std::span<const double>, EnsembleShape,
                                         std::span<const double>, std::span<Uncertainty>);

}  // namespace uper
