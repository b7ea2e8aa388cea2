#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/cpu_optimizer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/cpu/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

using optimizer_internal::AdamConstants;
using optimizer_internal::RmsPropConstants;

// One vector of parameters, gradient and optimizer state.
struct StateVec {
  Vec p, g, m, v;
};

// Vectors of a gradient that is stored, in the order of the parameters.
struct StoredGradient {
  explicit StoredGradient(const float* values) : next(values) {}

  HWY_INLINE Vec Next() {
    const Vec g = LoadVec(next);
    next += kLanes;
    return g;
  }
  HWY_INLINE Vec Last(int lanes) const { return LoadMasked(FirstLanes(lanes), next); }

  const float* next;
};

// Vectors of a gradient made from outer products. They follow the block as it lies in memory, so
// that a vector may span the end of a row.
struct ComputedGradient {
  explicit ComputedGradient(const OuterProducts& products) : p(products) {}

  HWY_INLINE Vec Next() {
    const int left = p.columns - column;  // in this row
    const Vec g = left >= kLanes ? InRow() : AcrossRows(left);
    column += kLanes;
    if (column >= p.columns) {
      column -= p.columns;
      ++row;
    }
    return g;
  }
  // The last lanes lie in one row, because no row is shorter than a vector.
  HWY_INLINE Vec Last(int lanes) const { return hn::IfThenElseZero(FirstLanes(lanes), InRow()); }

  HWY_INLINE Vec InRow() const {
    Vec g = Zero();
    for (size_t i = 0; i < p.rows_of.size(); ++i) {
      g = Fused(Broadcast(p.rows_of[i][row]), LoadVec(p.columns_of[i] + column), g);
    }
    return g;
  }
  HWY_INLINE Vec AcrossRows(int left) const {
    const MaskVec first = FirstLanes(left);
    Vec g = Zero();
    for (size_t i = 0; i < p.rows_of.size(); ++i) {
      const float* factors = p.rows_of[i] + row;
      const Vec factor = hn::IfThenElse(first, Broadcast(factors[0]), Broadcast(factors[1]));
      g = Fused(factor, LoadVec(p.columns_of[i] + column), g);
    }
    return g;
  }

  const OuterProducts p;
  int row = 0;
  int column = 0;
};

// The same for N terms. The factors of the current row stay in registers.
template <int N>
struct HeldGradient {
  explicit HeldGradient(const OuterProducts& products) : p(products) { LoadRow(); }

  HWY_INLINE Vec Next() {
    const int left = p.columns - column;  // in this row
    if (left < kLanes) return AcrossRows(left);
    const Vec g = InRow();
    column += kLanes;
    if (left == kLanes) {
      column = 0;
      if (++row < p.rows) LoadRow();
    }
    return g;
  }
  HWY_INLINE Vec Last(int lanes) const { return hn::IfThenElseZero(FirstLanes(lanes), InRow()); }

  HWY_INLINE void LoadRow() {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) factors[i] = Broadcast(p.rows_of[i][row]);
  }
  HWY_INLINE Vec InRow() const {
    Vec g = Zero();
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) g = Fused(factors[i], LoadVec(p.columns_of[i] + column), g);
    return g;
  }
  HWY_INLINE Vec AcrossRows(int left) {
    const MaskVec first = FirstLanes(left);
    ++row;
    Vec g = Zero();
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const Vec next = Broadcast(p.rows_of[i][row]);
      const Vec factor = hn::IfThenElse(first, factors[i], next);
      g = Fused(factor, LoadVec(p.columns_of[i] + column), g);
      factors[i] = next;
    }
    column += kLanes - p.columns;
    return g;
  }

  const OuterProducts p;
  int row = 0;
  int column = 0;
  Vec factors[N > 0 ? N : 1];
};

// Calls update(gradient) with the fastest form of the gradient: few terms are the rule.
template <typename Update>
HWY_INLINE void WithGradient(const OuterProducts& products, const Update& update) {
  switch (products.rows_of.size()) {
    case 0:
      return update(HeldGradient<0>(products));
    case 1:
      return update(HeldGradient<1>(products));
    case 2:
      return update(HeldGradient<2>(products));
    case 3:
      return update(HeldGradient<3>(products));
    case 4:
      return update(HeldGradient<4>(products));
    case 5:
      return update(HeldGradient<5>(products));
    default:
      return update(ComputedGradient(products));
  }
}

// Calls update(StateVec&) on all vectors of the buffers. Spare lanes of the last vector are 0.
template <typename Gradient, typename Update>
HWY_INLINE void ForEachVector(const OptimizerBuffers& buffers, Gradient gradient,
                              float gradient_scale, const Update& update) {
  const Vec scale = Broadcast(gradient_scale);
  const size_t count = buffers.parameters.size();
  float* p = buffers.parameters.data();
  float* m = buffers.m.data();
  float* v = buffers.v.data();
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    StateVec s{LoadVec(p + i), hn::Mul(gradient.Next(), scale), LoadVec(m + i), LoadVec(v + i)};
    update(s);
    StoreVec(s.p, p + i);
    StoreVec(s.m, m + i);
    StoreVec(s.v, v + i);
  }
  if (i == count) return;
  const int lanes = static_cast<int>(count - i);
  const MaskVec mask = FirstLanes(lanes);
  StateVec s{LoadMasked(mask, p + i), hn::Mul(gradient.Last(lanes), scale), LoadMasked(mask, m + i),
             LoadMasked(mask, v + i)};
  update(s);
  StoreMasked(s.p, mask, p + i);
  StoreMasked(s.m, mask, m + i);
  StoreMasked(s.v, mask, v + i);
}

// decay * mean + (1 - decay) * value.
HWY_INLINE Vec Average(Vec decay, Vec mean, Vec one_minus_decay, Vec value) {
  return Fused(decay, mean, hn::Mul(one_minus_decay, value));
}

template <typename Gradient>
HWY_INLINE void Adam(const AdamConstants& c, const OptimizerBuffers& buffers,
                     const Gradient& gradient) {
  const Vec first = Broadcast(c.first_moment_decay),
            other_first = Broadcast(c.one_minus_first_decay);
  const Vec second = Broadcast(c.second_moment_decay),
            other_second = Broadcast(c.one_minus_second_decay);
  const Vec rate = Broadcast(c.rate), root_scale = Broadcast(c.root_scale);
  const Vec epsilon = Broadcast(c.epsilon);
  ForEachVector(buffers, gradient, c.gradient_scale, [&](StateVec& s) HWY_ATTR {
    s.m = Average(first, s.m, other_first, s.g);
    s.v = Average(second, s.v, other_second, hn::Mul(s.g, s.g));
    const Vec divisor = Fused(hn::Sqrt(s.v), root_scale, epsilon);
    s.p = hn::Sub(s.p, hn::Div(hn::Mul(rate, s.m), divisor));
  });
}

template <typename Gradient>
HWY_INLINE void RmsProp(const RmsPropConstants& c, const OptimizerBuffers& buffers,
                        const Gradient& gradient) {
  const Vec decay = Broadcast(c.decay), other = Broadcast(c.one_minus_decay);
  const Vec rate = Broadcast(c.rate);
  const bool inside_root = c.epsilon_placement == EpsilonPlacement::kInsideRoot;
  const Vec inside = Broadcast(inside_root ? c.epsilon : 0.0F);
  const Vec outside = Broadcast(inside_root ? 0.0F : c.epsilon);
  ForEachVector(buffers, gradient, c.gradient_scale, [&](StateVec& s) HWY_ATTR {
    s.m = Average(decay, s.m, other, s.g);
    s.v = Average(decay, s.v, other, hn::Mul(s.g, s.g));
    const Vec variance = Relu(Fused(hn::Neg(s.m), s.m, s.v));
    const Vec divisor = hn::Add(hn::Sqrt(hn::Add(variance, inside)), outside);
    s.p = hn::Sub(s.p, hn::Div(hn::Mul(rate, s.g), divisor));
  });
}

void AdamStored(const AdamConstants& c, const OptimizerBuffers& buffers) {
  Adam(c, buffers, StoredGradient(buffers.gradient.data()));
}
void AdamComputed(const AdamConstants& c, const OptimizerBuffers& buffers,
                  const OuterProducts& gradient) {
  WithGradient(gradient, [&](const auto& computed) HWY_ATTR { Adam(c, buffers, computed); });
}
void RmsPropStored(const RmsPropConstants& c, const OptimizerBuffers& buffers) {
  RmsProp(c, buffers, StoredGradient(buffers.gradient.data()));
}
void RmsPropComputed(const RmsPropConstants& c, const OptimizerBuffers& buffers,
                     const OuterProducts& gradient) {
  WithGradient(gradient, [&](const auto& computed) HWY_ATTR { RmsProp(c, buffers, computed); });
}

// Sum of squares in 16 partial sums of doubles, added in ascending order.
double SumOfSquaresImpl(const float* values, size_t count) {
  const hn::CappedTag<double, 8> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  constexpr int kWide = static_cast<int>(hn::MaxLanes(wide));
  constexpr int kVectors = kPartialSums / kWide;
  hn::Vec<decltype(wide)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(wide);
  size_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const auto x = hn::PromoteTo(wide, hn::LoadU(narrow, values + i + v * kWide));
      sums[v] = hn::MulAdd(x, x, sums[v]);  // a float's square is exact in double
    }
  }
  HWY_ALIGN double partial[kPartialSums];
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], wide, partial + v * kWide);
  for (int lane = 0; i < count; ++i, ++lane) {
    const double x = values[i];
    partial[lane] += x * x;
  }
  double sum = 0;
  for (const double value : partial) sum += value;
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper::cpu {
namespace {

using optimizer_internal::AdamConstants;
using optimizer_internal::RmsPropConstants;

constexpr std::size_t kCopyPiece = 1 << 14;  // floats in one task

HWY_EXPORT(AdamStored);
HWY_EXPORT(AdamComputed);
HWY_EXPORT(RmsPropStored);
HWY_EXPORT(RmsPropComputed);
HWY_EXPORT(SumOfSquaresImpl);

AdamConstants ConstantsOf(const AdamOptions& options, std::int64_t update, double gradient_scale) {
  UPER_CHECK(update >= 1, "Adam counts its updates from 1");
  const double t = static_cast<double>(update);
  const double first = options.first_moment_decay;
  const double second = options.second_moment_decay;
  return {.first_moment_decay = static_cast<float>(first),
          .one_minus_first_decay = static_cast<float>(1 - first),
          .second_moment_decay = static_cast<float>(second),
          .one_minus_second_decay = static_cast<float>(1 - second),
          .rate = static_cast<float>(options.learning_rate / (1 - std::pow(first, t))),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(second, t))),
          .epsilon = static_cast<float>(options.epsilon),
          .gradient_scale = static_cast<float>(gradient_scale)};
}

RmsPropConstants ConstantsOf(const RmsPropOptions& options, double gradient_scale) {
  return {.decay = static_cast<float>(options.decay),
          .one_minus_decay = static_cast<float>(1 - options.decay),
          .rate = static_cast<float>(options.learning_rate),
          .epsilon = static_cast<float>(options.epsilon),
          .epsilon_placement = options.epsilon_placement,
          .gradient_scale = static_cast<float>(gradient_scale)};
}

}  // namespace

OptimizerUpdate::OptimizerUpdate(const AdamOptions& options, std::int64_t update,
                                 double gradient_scale)
    : constants_(ConstantsOf(options, update, gradient_scale)) {}

OptimizerUpdate::OptimizerUpdate(const RmsPropOptions& options, double gradient_scale)
    : constants_(ConstantsOf(options, gradient_scale)) {}

void OptimizerUpdate::Apply(const OptimizerBuffers& buffers) const {
  const std::size_t size = buffers.parameters.size();
  UPER_CHECK(
      buffers.gradient.size() == size && buffers.m.size() == size && buffers.v.size() == size,
      "parameters, gradient and state must have one size");
  if (const auto* adam = std::get_if<AdamConstants>(&constants_)) {
    HWY_DYNAMIC_DISPATCH(AdamStored)(*adam, buffers);
  } else {
    HWY_DYNAMIC_DISPATCH(RmsPropStored)(std::get<RmsPropConstants>(constants_), buffers);
  }
}

void OptimizerUpdate::Apply(const OptimizerBuffers& buffers, const OuterProducts& gradient) const {
  const std::size_t size = buffers.parameters.size();
  UPER_CHECK(size == std::size_t{1} * gradient.rows * gradient.columns &&
                 buffers.m.size() == size && buffers.v.size() == size &&
                 gradient.rows_of.size() == gradient.columns_of.size(),
             "parameters, gradient and state must have one shape");
  UPER_CHECK(gradient.columns >= OuterProducts::kLeastColumns, "too few columns");
  if (const auto* adam = std::get_if<AdamConstants>(&constants_)) {
    HWY_DYNAMIC_DISPATCH(AdamComputed)(*adam, buffers, gradient);
  } else {
    HWY_DYNAMIC_DISPATCH(RmsPropComputed)(std::get<RmsPropConstants>(constants_), buffers,
                                          gradient);
  }
}

double SumOfSquares(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresImpl)(values.data(), values.size());
}

void CopyParameters(std::span<const float> from, std::span<float> to, ThreadPool& pool) {
  UPER_CHECK(from.size() == to.size(), "parameters of another network");
  pool.ParallelTasks(static_cast<int>(CeilDiv(from.size(), kCopyPiece)), [&](int task) {
    const std::size_t begin = task * kCopyPiece;
    std::copy_n(from.data() + begin, std::min(kCopyPiece, from.size() - begin), to.data() + begin);
  });
}

}  // namespace uper::cpu
#endif  // HWY_ONCE
