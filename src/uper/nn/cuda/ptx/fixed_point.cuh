#pragma once

#include <cuda_runtime.h>

namespace uper::cuda {

// Adds floats as whole numbers of 32 bits, so that sums are exact in any order. Products with
// bytes, byte by byte, are exact, too. The unit follows from the largest number.

// Ordered like absolute values; numbers that are not finite come last.
__device__ inline unsigned MagnitudeBits(float value) {
  return __float_as_uint(value) & 0x7fffffffU;
}

// If the largest number is below 2^e, the unit is 2^(e - 31). Numbers of that size keep all their
// bits, and none reaches 2^31. The unit is at least the smallest normal float, 2^-126.
class FixedPoint {
 public:
  // `largest`: the largest of the MagnitudeBits().
  __device__ explicit FixedPoint(unsigned largest) {
    constexpr int kLeast = 31;
    const int exponent = max(static_cast<int>(largest >> 23), kLeast);  // e + 126
    per_unit_ = PowerOfTwo(157 - exponent);
    unit_ = PowerOfTwo(exponent - 157);
    // If one of the numbers is not finite, all sums become NaN.
    if (largest >= 0x7f800000U) unit_ = __uint_as_float(0x7fffffffU);
  }

  __device__ float unit() const { return unit_; }
  // Rounds to nearest.
  __device__ int Whole(float value) const { return __float2int_rn(value * per_unit_); }
  // The same for a sum.
  __device__ float Value(long long whole) const { return __ll2float_rn(whole) * unit_; }

 private:
  __device__ static float PowerOfTwo(int exponent) {
    return __uint_as_float(static_cast<unsigned>(exponent + 127) << 23);
  }

  float per_unit_, unit_;
};

inline constexpr int kWholeBytes = 4;

// The sum of whole numbers from the sums of their bytes; the last byte has the sign.
__device__ inline long long WholeFromBytes(const int (&sums)[kWholeBytes]) {
  long long whole = 0;
#pragma unroll
  for (int i = 0; i < kWholeBytes; ++i) whole += (1LL << 8 * i) * sums[i];
  return whole;
}

}  // namespace uper::cuda
