#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/quantile_huber.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "uper/nn/cpu/kernels/quantile_huber.h"
#include "uper/nn/cpu/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

// Vectors of online quantiles that pass through the targets together, so that their chains of
// additions overlap.
inline constexpr int kTogether = 2;

// Sums over the targets for some vectors of online quantiles.
struct HuberSums {
  Vec loss[kTogether];
  Vec slope[kTogether];
};

// Sums over the targets of |tau - 1(u < 0)| * huber(u), and the same with the slope of huber.
// huber(u) = c (u - c / 2) with c = u clipped to +-kappa.
HWY_INLINE void SumHuber(const Vec (&theta)[kTogether], const Vec (&tau)[kTogether],
                         std::span<const float> targets, float kappa, HuberSums& sums) {
  const Vec high = Broadcast(kappa);
  const Vec low = Broadcast(-kappa);
  const Vec minus_half = Broadcast(-0.5F);
  Vec one_minus_tau[kTogether];
  for (int w = 0; w < kTogether; ++w) one_minus_tau[w] = hn::Sub(Broadcast(1.0F), tau[w]);
  for (const float target : targets) {
#pragma GCC unroll 2
    for (int w = 0; w < kTogether; ++w) {
      const Vec u = hn::Sub(Broadcast(target), theta[w]);
      const Vec clipped = hn::Max(hn::Min(u, high), low);
      const Vec weight = hn::IfThenElse(hn::Lt(u, Zero()), one_minus_tau[w], tau[w]);
      const Vec slope = hn::Mul(weight, clipped);
      sums.slope[w] = hn::Add(sums.slope[w], slope);
      sums.loss[w] = Fused(slope, Fused(minus_half, clipped, u), sums.loss[w]);
    }
  }
}

// The quantile loss without smoothing: |u| instead of huber(u), slope sign(u).
HWY_INLINE void SumAbsolute(const Vec (&theta)[kTogether], const Vec (&tau)[kTogether],
                            std::span<const float> targets, HuberSums& sums) {
  Vec tau_minus_one[kTogether];
  for (int w = 0; w < kTogether; ++w) tau_minus_one[w] = hn::Sub(tau[w], Broadcast(1.0F));
  for (const float target : targets) {
#pragma GCC unroll 2
    for (int w = 0; w < kTogether; ++w) {
      const Vec u = hn::Sub(Broadcast(target), theta[w]);
      const Vec above = hn::IfThenElseZero(hn::Gt(u, Zero()), tau[w]);
      const Vec slope = hn::IfThenElse(hn::Lt(u, Zero()), tau_minus_one[w], above);
      sums.slope[w] = hn::Add(sums.slope[w], slope);
      sums.loss[w] = Fused(slope, u, sums.loss[w]);
    }
  }
}

double QuantileHuber(std::span<const float> theta, std::span<const float> targets, float kappa,
                     std::span<float> gradient) {
  constexpr int kStep = kTogether * kLanes;
  const int m = static_cast<int>(theta.size());
  const Vec midpoint_step = Broadcast(1.0F / static_cast<float>(m));
  const Vec minus_n = Broadcast(-static_cast<float>(targets.size()));
  WideVec losses[kWideVectors];  // of quantile i in sum i % 8
  for (WideVec& sum : losses) sum = hn::Zero(WideTag());
  for (int i = 0; i < m; i += kStep) {
    Vec row[kTogether];
    Vec tau[kTogether];
    HuberSums sums;
    for (int w = 0; w < kTogether; ++w) {
      const int at = i + w * kLanes;
      row[w] = LoadMasked(FirstLanes(HWY_MAX(0, HWY_MIN(kLanes, m - at))), theta.data() + at);
      tau[w] = hn::Mul(hn::Iota(Tag(), static_cast<float>(at) + 0.5F), midpoint_step);
      sums.loss[w] = sums.slope[w] = Zero();
    }
    if (kappa > 0) {
      SumHuber(row, tau, targets, kappa, sums);
    } else {
      SumAbsolute(row, tau, targets, sums);
    }
    HWY_ALIGN float loss[kStep];
    for (int w = 0; w < kTogether; ++w) {
      const int at = i + w * kLanes;
      if (at < m) {
        StoreMasked(hn::Div(sums.slope[w], minus_n), FirstLanes(HWY_MIN(kLanes, m - at)),
                    gradient.data() + at);
      }
      StoreVec(sums.loss[w], loss + w * kLanes);
    }
    const int count = HWY_MIN(kStep, m - i);
    for (int lane = 0; lane < count; lane += kWideLanes) {
      WideVec& sum = losses[lane / kWideLanes % kWideVectors];
      sum = hn::Add(sum, LoadWide(loss + lane, HWY_MIN(kWideLanes, count - lane)));
    }
  }
  return SumOfWide(losses) / static_cast<double>(targets.size());
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper::cpu {

HWY_EXPORT(QuantileHuber);

double QuantileHuberSimd(std::span<const float> theta, std::span<const float> targets, float kappa,
                         std::span<float> gradient) {
  return HWY_DYNAMIC_DISPATCH(QuantileHuber)(theta, targets, kappa, gradient);
}

}  // namespace uper::cpu
#endif
