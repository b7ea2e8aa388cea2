#include "uper/nn/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/quantile_huber.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "uper/nn/cpu/quantile_huber.h"
#include "uper/nn/cpu/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper {
namespace HWY_NAMESPACE {

// Sums over the targets for one vector of online quantiles.
struct HuberSums {
  Vec loss;
  Vec slope;
};

// |tau - 1(u < 0)| * huber(u) and the same with the Huber slope, added up over the targets.
// huber(u) = c (u - c / 2) with c = u clipped to +-kappa.
HWY_INLINE HuberSums SumHuber(Vec theta, Vec tau, std::span<const float> targets, float kappa) {
  const Vec high = Broadcast(kappa);
  const Vec low = Broadcast(-kappa);
  const Vec minus_half = Broadcast(-0.5F);
  const Vec one_minus_tau = hn::Sub(Broadcast(1.0F), tau);
  HuberSums sums{Zero(), Zero()};
  for (const float target : targets) {
    const Vec u = hn::Sub(Broadcast(target), theta);
    const Vec clipped = hn::Max(hn::Min(u, high), low);
    const Vec weight = hn::IfThenElse(hn::Lt(u, Zero()), one_minus_tau, tau);
    const Vec slope = hn::Mul(weight, clipped);
    sums.slope = hn::Add(sums.slope, slope);
    sums.loss = Fused(slope, Fused(minus_half, clipped, u), sums.loss);
  }
  return sums;
}

// The plain quantile loss: |u| in the Huber part's place, slope sign(u).
HWY_INLINE HuberSums SumAbsolute(Vec theta, Vec tau, std::span<const float> targets) {
  const Vec tau_minus_one = hn::Sub(tau, Broadcast(1.0F));
  HuberSums sums{Zero(), Zero()};
  for (const float target : targets) {
    const Vec u = hn::Sub(Broadcast(target), theta);
    const Vec above = hn::IfThenElseZero(hn::Gt(u, Zero()), tau);
    const Vec slope = hn::IfThenElse(hn::Lt(u, Zero()), tau_minus_one, above);
    sums.slope = hn::Add(sums.slope, slope);
    sums.loss = Fused(slope, u, sums.loss);
  }
  return sums;
}

double QuantileHuber(std::span<const float> theta, std::span<const float> targets, float kappa,
                     std::span<float> gradient) {
  const int m = static_cast<int>(theta.size());
  const Vec midpoint_step = Broadcast(1.0F / static_cast<float>(m));
  const Vec minus_n = Broadcast(-static_cast<float>(targets.size()));
  double loss = 0;
  for (int i = 0; i < m; i += kLanes) {
    const int count = HWY_MIN(kLanes, m - i);
    HWY_ALIGN float row[kLanes] = {};
    for (int lane = 0; lane < count; ++lane) row[lane] = theta[i + lane];
    const Vec tau = hn::Mul(hn::Iota(Tag(), static_cast<float>(i) + 0.5F), midpoint_step);
    const HuberSums sums = kappa > 0 ? SumHuber(LoadVec(row), tau, targets, kappa)
                                     : SumAbsolute(LoadVec(row), tau, targets);
    StoreVec(hn::Div(sums.slope, minus_n), row);
    for (int lane = 0; lane < count; ++lane) gradient[i + lane] = row[lane];
    StoreVec(sums.loss, row);
    for (int lane = 0; lane < count; ++lane) loss += double{row[lane]};
  }
  return loss / static_cast<double>(targets.size());
}

}  // namespace HWY_NAMESPACE
}  // namespace uper
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper {

HWY_EXPORT(QuantileHuber);

double QuantileHuberFast(std::span<const float> theta, std::span<const float> targets, float kappa,
                         std::span<float> gradient) {
  return HWY_DYNAMIC_DISPATCH(QuantileHuber)(theta, targets, kappa, gradient);
}

}  // namespace uper
#endif
