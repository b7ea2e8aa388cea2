#include "uper/nn/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/cpu_optimizer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "uper/base/check.h"
#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/cpu/simd_inl.h"

// Plain structs that both sides of the dispatch know.
#ifndef UPER_NN_CPU_CPU_OPTIMIZER_STRUCTS_
#define UPER_NN_CPU_CPU_OPTIMIZER_STRUCTS_
namespace uper {
namespace optimizer_internal {

// A part of the buffers, for one task.
struct Part {
  float* p;
  const float* g;
  float* m;
  float* v;
  int count;
};

struct AdamConstants {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float rate;        // learning rate / (1 - beta1^t)
  float root_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
};

struct RmsPropConstants {
  float decay, one_minus_decay, rate, epsilon;
  bool inside_root;
  float gradient_scale;
};

}  // namespace optimizer_internal
}  // namespace uper
#endif

HWY_BEFORE_NAMESPACE();
namespace uper {
namespace HWY_NAMESPACE {

using optimizer_internal::AdamConstants;
using optimizer_internal::Part;
using optimizer_internal::RmsPropConstants;

// One vector of the state of an optimiser.
struct StateVec {
  Vec p, g, m, v;
};

// Calls update(StateVec&) on all vectors of the part, the last one with its spare lanes at 0.
template <typename Update>
HWY_INLINE void ForEachVector(const Part& part, float gradient_scale, const Update& update) {
  const Vec scale = Broadcast(gradient_scale);
  int i = 0;
  for (; i + kLanes <= part.count; i += kLanes) {
    StateVec s{LoadVec(part.p + i), hn::Mul(LoadVec(part.g + i), scale), LoadVec(part.m + i),
               LoadVec(part.v + i)};
    update(s);
    StoreVec(s.p, part.p + i);
    StoreVec(s.m, part.m + i);
    StoreVec(s.v, part.v + i);
  }
  if (i == part.count) return;
  const MaskVec mask = FirstLanes(part.count - i);
  StateVec s{LoadMasked(mask, part.p + i), hn::Mul(LoadMasked(mask, part.g + i), scale),
             LoadMasked(mask, part.m + i), LoadMasked(mask, part.v + i)};
  update(s);
  StoreMasked(s.p, mask, part.p + i);
  StoreMasked(s.m, mask, part.m + i);
  StoreMasked(s.v, mask, part.v + i);
}

// decay * mean + (1 - decay) * value.
HWY_INLINE Vec Average(Vec decay, Vec mean, Vec one_minus_decay, Vec value) {
  return Fused(decay, mean, hn::Mul(one_minus_decay, value));
}

void AdamPart(const AdamConstants& c, const Part& part) {
  const Vec beta1 = Broadcast(c.beta1), other1 = Broadcast(c.one_minus_beta1);
  const Vec beta2 = Broadcast(c.beta2), other2 = Broadcast(c.one_minus_beta2);
  const Vec rate = Broadcast(c.rate), root_scale = Broadcast(c.root_scale);
  const Vec epsilon = Broadcast(c.epsilon);
  ForEachVector(part, c.gradient_scale, [&](StateVec& s) HWY_ATTR {
    s.m = Average(beta1, s.m, other1, s.g);
    s.v = Average(beta2, s.v, other2, hn::Mul(s.g, s.g));
    const Vec divisor = Fused(hn::Sqrt(s.v), root_scale, epsilon);
    s.p = hn::Sub(s.p, hn::Div(hn::Mul(rate, s.m), divisor));
  });
}

void RmsPropPart(const RmsPropConstants& c, const Part& part) {
  const Vec decay = Broadcast(c.decay), other = Broadcast(c.one_minus_decay);
  const Vec rate = Broadcast(c.rate);
  const Vec inside = Broadcast(c.inside_root ? c.epsilon : 0.0F);
  const Vec outside = Broadcast(c.inside_root ? 0.0F : c.epsilon);
  ForEachVector(part, c.gradient_scale, [&](StateVec& s) HWY_ATTR {
    s.m = Average(decay, s.m, other, s.g);
    s.v = Average(decay, s.v, other, hn::Mul(s.g, s.g));
    const Vec variance = Relu(Fused(hn::Neg(s.m), s.m, s.v));
    const Vec divisor = hn::Add(hn::Sqrt(hn::Add(variance, inside)), outside);
    s.p = hn::Sub(s.p, hn::Div(hn::Mul(rate, s.g), divisor));
  });
}

// Sum of squares in 16 partial sums of doubles, added in ascending order.
double SumOfSquares(const float* values, int count) {
  const hn::CappedTag<double, 8> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  constexpr int kWide = static_cast<int>(hn::MaxLanes(wide));
  constexpr int kVectors = kPartialSums / kWide;
  hn::Vec<decltype(wide)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(wide);
  int i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const auto x = hn::PromoteTo(wide, hn::LoadU(narrow, values + i + v * kWide));
      sums[v] = hn::Add(sums[v], hn::Mul(x, x));
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
}  // namespace uper
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper {
namespace {

using optimizer_internal::AdamConstants;
using optimizer_internal::Part;
using optimizer_internal::RmsPropConstants;

constexpr std::size_t kPart = 1 << 14;  // floats in one task
constexpr std::size_t kNormParts = 256;

HWY_EXPORT(AdamPart);
HWY_EXPORT(RmsPropPart);
HWY_EXPORT(SumOfSquares);

// Calls task(begin, count) for pieces of [0, size).
template <typename Task>
void ForEachPart(std::size_t size, std::size_t piece, ThreadPool& pool, const Task& task) {
  pool.ParallelTasks(static_cast<int>((size + piece - 1) / piece), [&](int index) {
    const std::size_t begin = index * piece;
    task(begin, std::min(piece, size - begin));
  });
}

Part PartOf(const OptimizerBuffers& buffers, std::size_t begin, std::size_t count) {
  return {buffers.parameters.data() + begin, buffers.gradient.data() + begin,
          buffers.m.data() + begin, buffers.v.data() + begin, static_cast<int>(count)};
}

void CheckSizes(const OptimizerBuffers& buffers) {
  const std::size_t size = buffers.parameters.size();
  UPER_CHECK(
      buffers.gradient.size() == size && buffers.m.size() == size && buffers.v.size() == size,
      "parameters, gradient and state must have one size");
}

}  // namespace

void AdamStep(const AdamOptions& options, std::int64_t step, double gradient_scale,
              const OptimizerBuffers& buffers, ThreadPool& pool) {
  UPER_CHECK(step >= 1, "Adam counts its steps from 1");
  CheckSizes(buffers);
  const double t = static_cast<double>(step);
  const AdamConstants constants{
      .beta1 = static_cast<float>(options.beta1),
      .one_minus_beta1 = static_cast<float>(1 - options.beta1),
      .beta2 = static_cast<float>(options.beta2),
      .one_minus_beta2 = static_cast<float>(1 - options.beta2),
      .rate = static_cast<float>(options.learning_rate / (1 - std::pow(options.beta1, t))),
      .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t))),
      .epsilon = static_cast<float>(options.epsilon),
      .gradient_scale = static_cast<float>(gradient_scale)};
  ForEachPart(buffers.parameters.size(), kPart, pool, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(AdamPart)(constants, PartOf(buffers, begin, count));
  });
}

void RmsPropStep(const RmsPropOptions& options, double gradient_scale,
                 const OptimizerBuffers& buffers, ThreadPool& pool) {
  CheckSizes(buffers);
  const RmsPropConstants constants{
      .decay = static_cast<float>(options.decay),
      .one_minus_decay = static_cast<float>(1 - options.decay),
      .rate = static_cast<float>(options.learning_rate),
      .epsilon = static_cast<float>(options.epsilon),
      .inside_root = options.epsilon_place == EpsilonPlace::kInsideRoot,
      .gradient_scale = static_cast<float>(gradient_scale)};
  ForEachPart(buffers.parameters.size(), kPart, pool, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(RmsPropPart)(constants, PartOf(buffers, begin, count));
  });
}

double GlobalNorm(std::span<const float> gradient, ThreadPool& pool) {
  // Pieces are fixed by the size alone; their number is bounded so that the sums fit the stack.
  const std::size_t piece = std::max(kPart, gradient.size() / kNormParts + 1);
  std::array<double, kNormParts> sums{};
  ForEachPart(gradient.size(), piece, pool, [&](std::size_t begin, std::size_t count) {
    sums[begin / piece] =
        HWY_DYNAMIC_DISPATCH(SumOfSquares)(gradient.data() + begin, static_cast<int>(count));
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return std::sqrt(sum);
}

void CopyParameters(std::span<const float> from, std::span<float> to, ThreadPool& pool) {
  UPER_CHECK(from.size() == to.size(), "parameters of another network");
  ForEachPart(from.size(), kPart, pool, [&](std::size_t begin, std::size_t count) {
    std::copy_n(from.data() + begin, count, to.data() + begin);
  });
}

}  // namespace uper
#endif  // HWY_ONCE
