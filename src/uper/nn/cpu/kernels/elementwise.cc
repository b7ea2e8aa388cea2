#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "uper/nn/cpu/kernels/elementwise.h"
#include "uper/nn/cpu/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE Vec LoadScaled(const std::uint8_t* from, Vec scale) {
  const hn::Rebind<std::uint8_t, Tag> bytes;
  const hn::Rebind<std::int32_t, Tag> integers;
  return hn::Mul(hn::ConvertTo(Tag(), hn::PromoteTo(integers, hn::LoadU(bytes, from))), scale);
}

HWY_INLINE Vec LoadScaled(const float* from, Vec scale) { return hn::Mul(LoadVec(from), scale); }

// to[i] = scale * from[i].
template <typename Entry>
void Scale(const Entry* from, int count, float scale, float* to) {
  const Vec factor = Broadcast(scale);
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) StoreVec(LoadScaled(from + i, factor), to + i);
  for (; i < count; ++i) to[i] = scale * static_cast<float>(from[i]);
}

// Turns planes [channels, pixels] into pixels [pixels, channels].
template <typename Entry>
void Interleave(const Entry* from, int pixels, int channels, float scale, float* to) {
  int i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (channels == 4) {
    const Vec factor = Broadcast(scale);
    for (; i + kLanes <= pixels; i += kLanes) {
      hn::StoreInterleaved4(LoadScaled(from + i, factor), LoadScaled(from + pixels + i, factor),
                            LoadScaled(from + 2 * pixels + i, factor),
                            LoadScaled(from + 3 * pixels + i, factor), Tag(), to + 4 * i);
    }
  }
#endif
  for (; i < pixels; ++i) {
    for (int c = 0; c < channels; ++c) {
      to[i * channels + c] = scale * static_cast<float>(from[c * pixels + i]);
    }
  }
}

template <typename Entry>
void Convert(const InputSpec& input, const Entry* from, float* to) {
  const int pixels = input.height * input.width;
  if (input.layout == InputLayout::kPlanes && input.channels > 1) {
    Interleave(from, pixels, input.channels, input.scale, to);
  } else {
    Scale(from, pixels * input.channels, input.scale, to);
  }
}

void ConvertObservationImpl(const InputSpec& input, const std::byte* from, float* to) {
  if (input.type == InputType::kUint8) {
    Convert(input, reinterpret_cast<const std::uint8_t*>(from), to);
  } else {
    Convert(input, reinterpret_cast<const float*>(from), to);
  }
}

void MaskByActivationImpl(const float* activation, size_t count, float* d) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const MaskVec active = hn::Gt(LoadVec(activation + i), Zero());
    StoreVec(hn::IfThenElseZero(active, LoadVec(d + i)), d + i);
  }
  for (; i < count; ++i) d[i] = activation[i] > 0 ? d[i] : 0.0F;
}

void ColumnSumsImpl(const float* x, int rows, int columns, bool add, float* sums) {
  for (int c = 0; c < columns; c += kLanes) {
    const MaskVec mask = FirstLanes(std::min(kLanes, columns - c));
    Vec sum = Zero();
    for (int r = 0; r < rows; ++r) {
      sum = hn::Add(sum, LoadMasked(mask, x + std::ptrdiff_t{1} * r * columns + c));
    }
    if (add) sum = hn::Add(LoadMasked(mask, sums + c), sum);
    StoreMasked(sum, mask, sums + c);
  }
}

void ColumnSumsOfEachImpl(const float* x, int matrices, int rows, int columns, float* sums) {
  for (int i = 0; i < matrices; ++i) {
    ColumnSumsImpl(x, rows, columns, /*add=*/false, sums);
    x += std::ptrdiff_t{1} * rows * columns;
    sums += columns;
  }
}

void RowMeansImpl(const float* from, int rows, int length, float* to, std::ptrdiff_t to_stride) {
  const float count = static_cast<float>(length);
  for (int r = 0; r < rows; ++r, from += length) {
    Vec sums[kPartialVectors];
    for (Vec& sum : sums) sum = Zero();
    int i = 0;
    for (; i + kPartialSums <= length; i += kPartialSums) {
      for (int v = 0; v < kPartialVectors; ++v) {
        sums[v] = hn::Add(sums[v], LoadVec(from + i + v * kLanes));
      }
    }
    for (int v = 0; i < length; ++v, i += kLanes) {
      const MaskVec mask = FirstLanes(std::min(kLanes, length - i));
      sums[v] = hn::Add(sums[v], LoadMasked(mask, from + i));
    }
    to[r * to_stride] = SumOfPartials(sums) / count;
  }
}

// Transposes four rows and four columns.
HWY_INLINE void TransposeBlock(const float* from, std::ptrdiff_t from_stride, float* to,
                               std::ptrdiff_t to_stride) {
#if HWY_TARGET != HWY_SCALAR
  const auto row = [&](int r) HWY_ATTR { return hn::LoadU(FourTag(), from + r * from_stride); };
  FourVec a = row(0), b = row(1), c = row(2), d = row(3);
  TransposeFour(a, b, c, d);
  hn::StoreU(a, FourTag(), to);
  hn::StoreU(b, FourTag(), to + to_stride);
  hn::StoreU(c, FourTag(), to + 2 * to_stride);
  hn::StoreU(d, FourTag(), to + 3 * to_stride);
#else
  for (int c = 0; c < 4; ++c) {
    for (int r = 0; r < 4; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
#endif
}

void TransposeImpl(const float* from, int rows, int columns, std::ptrdiff_t from_stride, float* to,
                   std::ptrdiff_t to_stride) {
  constexpr int kBlock = 16;  // rows: a cache line of `to`
  for (int r0 = 0; r0 < rows; r0 += kBlock) {
    const int r1 = std::min(rows, r0 + kBlock);
    const int fours = r0 + (r1 - r0) / 4 * 4;
    int c = 0;
    for (; c + 4 <= columns; c += 4) {
      float* column = to + c * to_stride;
      for (int r = r0; r < fours; r += 4) {
        TransposeBlock(from + r * from_stride + c, from_stride, column + r, to_stride);
      }
      for (int r = fours; r < r1; ++r) {
        for (int i = 0; i < 4; ++i) column[i * to_stride + r] = from[r * from_stride + c + i];
      }
    }
    for (; c < columns; ++c) {
      for (int r = r0; r < r1; ++r) to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
}

HWY_INLINE bool AllZero(const float* values, int count) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (!hn::AllTrue(Tag(), hn::Eq(LoadVec(values + i), Zero()))) return false;
  }
  return hn::AllTrue(Tag(), hn::Eq(LoadMasked(FirstLanes(count - i), values + i), Zero()));
}

void FindNonzeroRowsImpl(const float* x, int rows, int columns, char* nonzero) {
  for (int r = 0; r < rows; ++r, x += columns) nonzero[r] = !AllZero(x, columns);
}

double DotProductImpl(const float* x, const float* y, int count) {
  WideVec sums[kWideVectors];
  for (WideVec& sum : sums) sum = hn::Zero(WideTag());
  int i = 0;
  for (; i + kWideSums <= count; i += kWideSums) {
#pragma GCC unroll 8
    for (int v = 0; v < kWideVectors; ++v) {
      const int at = i + v * kWideLanes;
      sums[v] = hn::MulAdd(LoadWide(x + at, kWideLanes), LoadWide(y + at, kWideLanes), sums[v]);
    }
  }
  for (int v = 0; i < count; ++v, i += kWideLanes) {
    const int lanes = std::min(kWideLanes, count - i);
    sums[v] = hn::MulAdd(LoadWide(x + i, lanes), LoadWide(y + i, lanes), sums[v]);
  }
  return SumOfWide(sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper::cpu {

HWY_EXPORT(ConvertObservationImpl);
HWY_EXPORT(MaskByActivationImpl);
HWY_EXPORT(ColumnSumsImpl);
HWY_EXPORT(ColumnSumsOfEachImpl);
HWY_EXPORT(RowMeansImpl);
HWY_EXPORT(TransposeImpl);
HWY_EXPORT(FindNonzeroRowsImpl);
HWY_EXPORT(DotProductImpl);

void ConvertObservation(const InputSpec& input, const std::byte* from, float* to) {
  HWY_DYNAMIC_DISPATCH(ConvertObservationImpl)(input, from, to);
}

void MaskByActivation(std::span<const float> activation, std::span<float> d) {
  HWY_DYNAMIC_DISPATCH(MaskByActivationImpl)(activation.data(), d.size(), d.data());
}

void ColumnSums(const float* x, int rows, int columns, bool add, float* sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsImpl)(x, rows, columns, add, sums);
}

void ColumnSumsOfEach(const float* x, int matrices, int rows, int columns, float* sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsOfEachImpl)(x, matrices, rows, columns, sums);
}

void RowMeans(const float* from, int rows, int length, float* to, std::ptrdiff_t to_stride) {
  HWY_DYNAMIC_DISPATCH(RowMeansImpl)(from, rows, length, to, to_stride);
}

void Transpose(const float* from, int rows, int columns, std::ptrdiff_t from_stride, float* to,
               std::ptrdiff_t to_stride) {
  HWY_DYNAMIC_DISPATCH(TransposeImpl)(from, rows, columns, from_stride, to, to_stride);
}

void FindNonzeroRows(const float* x, int rows, int columns, char* nonzero) {
  HWY_DYNAMIC_DISPATCH(FindNonzeroRowsImpl)(x, rows, columns, nonzero);
}

double DotProduct(std::span<const float> x, std::span<const float> y) {
  return HWY_DYNAMIC_DISPATCH(DotProductImpl)(x.data(), y.data(), static_cast<int>(x.size()));
}

}  // namespace uper::cpu
#endif  // HWY_ONCE
