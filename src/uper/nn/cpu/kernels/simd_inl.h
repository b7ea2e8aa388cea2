// Vector helpers for the kernels. Highway's foreach_target includes this file once per target, so
// it has a toggling guard instead of #pragma once.
#if defined(UPER_NN_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef UPER_NN_CPU_SIMD_INL_H_
#undef UPER_NN_CPU_SIMD_INL_H_
#else
#define UPER_NN_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
using MaskVec = hn::Mask<Tag>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
// Sums that run along memory are kept as 16 partial sums, element i in sum i % 16, on every target.
inline constexpr int kPartialSums = 16;
inline constexpr int kPartialVectors = kPartialSums / kLanes;

HWY_INLINE Vec Zero() { return hn::Zero(Tag()); }
HWY_INLINE Vec Broadcast(float value) { return hn::Set(Tag(), value); }
HWY_INLINE Vec LoadVec(const float* from) { return hn::LoadU(Tag(), from); }
HWY_INLINE void StoreVec(Vec value, float* to) { hn::StoreU(value, Tag(), to); }

// The value, loaded once. Without this GCC reads memory again for each use, and a vector that spans
// two cache lines costs two reads.
HWY_INLINE Vec Held(Vec value) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  asm("" : "+v"(value.raw));
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  asm("" : "+x"(value.raw));
#endif
  return value;
}

// a * b + c, rounded once.
HWY_INLINE Vec Fused(Vec a, Vec b, Vec c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN float x[kLanes], y[kLanes], z[kLanes];
  StoreVec(a, x);
  StoreVec(b, y);
  StoreVec(c, z);
  for (int i = 0; i < kLanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return LoadVec(z);
#endif
}

// Negative entries become 0. NaN stays NaN, so that an error in the network is noticed.
HWY_INLINE Vec Relu(Vec value) { return hn::IfThenZeroElse(hn::Lt(value, Zero()), value); }

HWY_INLINE MaskVec FirstLanes(int count) { return hn::FirstN(Tag(), static_cast<size_t>(count)); }

// Loads the lanes of the mask and sets the others to 0. Touches no other memory.
HWY_INLINE Vec LoadMasked(MaskVec mask, const float* from) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(mask, Tag(), from);
#else
  HWY_ALIGN float lanes[kLanes] = {};
  const size_t count = hn::CountTrue(Tag(), mask);
  for (size_t i = 0; i < count; ++i) lanes[i] = from[i];
  return LoadVec(lanes);
#endif
}

HWY_INLINE void StoreMasked(Vec value, MaskVec mask, float* to) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(value, mask, Tag(), to);
#elif HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2  // its masked store is very slow on AMD
  const hn::Half<Tag> half;
  const hn::Half<decltype(half)> quarter;
  const size_t count = hn::CountTrue(Tag(), mask);
  if (count >= 8) return StoreVec(value, to);
  auto low = hn::LowerHalf(half, value);
  if (count & 4) {
    hn::StoreU(low, half, to);
    low = hn::UpperHalf(half, value);
  }
  auto pair = hn::LowerHalf(quarter, low);
  if (count & 2) {
    hn::StoreU(pair, quarter, to + (count & 4));
    pair = hn::UpperHalf(quarter, low);
  }
  if (count & 1) to[count - 1] = hn::GetLane(pair);
#else
  HWY_ALIGN float lanes[kLanes];
  StoreVec(value, lanes);
  const size_t count = hn::CountTrue(Tag(), mask);
  for (size_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// Vectors of doubles, for sums of squares and other statistics: eight partial sums on every target.
using WideTag = hn::CappedTag<double, 8>;
using WideVec = hn::Vec<WideTag>;
inline constexpr int kWideLanes = static_cast<int>(hn::MaxLanes(WideTag()));
inline constexpr int kWideSums = 8;
inline constexpr int kWideVectors = kWideSums / kWideLanes;

// Loads the first `lanes` entries as doubles and sets the other lanes to 0. Touches no other
// memory.
HWY_INLINE WideVec LoadWide(const float* from, int lanes) {
  const hn::Rebind<float, WideTag> narrow;
  if (lanes == kWideLanes) return hn::PromoteTo(WideTag(), hn::LoadU(narrow, from));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const auto mask = hn::FirstN(narrow, static_cast<size_t>(lanes));
  return hn::PromoteTo(WideTag(), hn::MaskedLoad(mask, narrow, from));
#else
  HWY_ALIGN float values[kWideLanes] = {};
  for (int i = 0; i < lanes; ++i) values[i] = from[i];
  return hn::PromoteTo(WideTag(), hn::Load(narrow, values));
#endif
}

HWY_INLINE WideVec LoadWide(const double* from, int lanes) {
  if (lanes == kWideLanes) return hn::LoadU(WideTag(), from);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(WideTag(), static_cast<size_t>(lanes)), WideTag(), from);
#else
  HWY_ALIGN double values[kWideLanes] = {};
  for (int i = 0; i < lanes; ++i) values[i] = from[i];
  return hn::Load(WideTag(), values);
#endif
}

HWY_INLINE void StoreWide(WideVec value, int lanes, double* to) {
  if (lanes == kWideLanes) return hn::StoreU(value, WideTag(), to);
  HWY_ALIGN double values[kWideLanes];
  hn::Store(value, WideTag(), values);
  for (int i = 0; i < lanes; ++i) to[i] = values[i];
}

// The sum of the eight partial sums: upper half to lower half, three times.
HWY_INLINE double SumOfWide(const WideVec (&sums)[kWideVectors]) {
  HWY_ALIGN double s[kWideSums];
  for (int i = 0; i < kWideVectors; ++i) hn::StoreU(sums[i], WideTag(), s + i * kWideLanes);
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

#if HWY_TARGET != HWY_SCALAR
using FourTag = hn::Full128<float>;
using FourVec = hn::Vec<FourTag>;

// Reduces 16 partial sums to four: adds the upper half to the lower half twice. 16-byte aligned.
HWY_INLINE FourVec FoldPartials(const float* sums) {
  const FourTag four;
  const auto low = hn::Add(hn::Load(four, sums), hn::Load(four, sums + 8));
  const auto high = hn::Add(hn::Load(four, sums + 4), hn::Load(four, sums + 12));
  return hn::Add(low, high);
}

HWY_INLINE void TransposeFour(FourVec& a, FourVec& b, FourVec& c, FourVec& d) {
  const FourTag four;
  const hn::Full128<double> two;  // pairs of floats
  const auto low_ab = hn::BitCast(two, hn::InterleaveLower(four, a, b));
  const auto low_cd = hn::BitCast(two, hn::InterleaveLower(four, c, d));
  const auto high_ab = hn::BitCast(two, hn::InterleaveUpper(four, a, b));
  const auto high_cd = hn::BitCast(two, hn::InterleaveUpper(four, c, d));
  a = hn::BitCast(four, hn::InterleaveLower(two, low_ab, low_cd));
  b = hn::BitCast(four, hn::InterleaveUpper(two, low_ab, low_cd));
  c = hn::BitCast(four, hn::InterleaveLower(two, high_ab, high_cd));
  d = hn::BitCast(four, hn::InterleaveUpper(two, high_ab, high_cd));
}
#endif

// The sum of 16 partial sums in memory, 16-byte aligned: 16 -> 8 -> 4 by adding the upper half to
// the lower, then (s0 + s2) + (s1 + s3).
HWY_INLINE float SumOfPartials(const float* sums) {
  HWY_ALIGN float t[4];
#if HWY_TARGET != HWY_SCALAR
  hn::Store(FoldPartials(sums), FourTag(), t);
#else
  for (int i = 0; i < 4; ++i) t[i] = (sums[i] + sums[i + 8]) + (sums[i + 4] + sums[i + 12]);
#endif
  return (t[0] + t[2]) + (t[1] + t[3]);
}

HWY_INLINE float SumOfPartials(const Vec (&sums)[kPartialVectors]) {
  HWY_ALIGN float s[kPartialSums];
  for (int i = 0; i < kPartialVectors; ++i) StoreVec(sums[i], s + i * kLanes);
  return SumOfPartials(s);
}

// The same for four times 16 partial sums, `stride` floats apart.
HWY_INLINE void SumsOfFour(const float* sums, std::ptrdiff_t stride, float* to) {
#if HWY_TARGET != HWY_SCALAR
  FourVec t0 = FoldPartials(sums), t1 = FoldPartials(sums + stride);
  FourVec t2 = FoldPartials(sums + 2 * stride), t3 = FoldPartials(sums + 3 * stride);
  TransposeFour(t0, t1, t2, t3);
  hn::StoreU(hn::Add(hn::Add(t0, t2), hn::Add(t1, t3)), FourTag(), to);
#else
  for (int i = 0; i < 4; ++i) to[i] = SumOfPartials(sums + i * stride);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#endif  // UPER_NN_CPU_SIMD_INL_H_
