#pragma once

#include <cmath>

namespace uper {

// Numbers as whole multiples of a unit, 32 bits wide and cut into four bytes: for tensor cores,
// which multiply bytes by bytes and add up without rounding. The highest byte has the sign.

inline constexpr int kFixedBytes = 4;

// Not a number if one of them is not.
__device__ inline float LargerOrNan(float x, float y) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
  return larger;
}

// For numbers whose largest magnitude is in [2^(e-1), 2^e) a unit is 2^(e-31): a float of 24 bits
// is then less than 2^31 units.
struct FixedPoint {
  float unit;   // not a number if the largest is not finite
  float units;  // of 1

  __device__ explicit FixedPoint(float largest) {
    constexpr unsigned kMantissa = 23, kOne = 127, kNotFinite = 255;
    constexpr unsigned kBits = 30;   // a unit is that much below the largest's highest bit
    constexpr unsigned kLeast = 64;  // so that both are floats; numbers below 2^-94 become 0
    const unsigned exponent = max(__float_as_uint(largest) >> kMantissa, kLeast);
    units = __uint_as_float((2 * kOne + kBits - exponent) << kMantissa);
    unit = exponent < kNotFinite ? __uint_as_float((exponent - kBits) << kMantissa) : NAN;
  }
};

// bytes [byte]: that byte of four whole numbers, the first number's lowest.
__device__ inline void CutIntoBytes(const int (&four)[4], unsigned (&bytes)[kFixedBytes]) {
  const unsigned low01 = __byte_perm(four[0], four[1], 0x5140);
  const unsigned low23 = __byte_perm(four[2], four[3], 0x5140);
  const unsigned high01 = __byte_perm(four[0], four[1], 0x7362);
  const unsigned high23 = __byte_perm(four[2], four[3], 0x7362);
  bytes[0] = __byte_perm(low01, low23, 0x5410);
  bytes[1] = __byte_perm(low01, low23, 0x7632);
  bytes[2] = __byte_perm(high01, high23, 0x5410);
  bytes[3] = __byte_perm(high01, high23, 0x7632);
}

// Of sums over at most kFixedLength products of a byte, by the other factor's bytes, with one
// rounding. Two neighbours fit into 32 bits.
inline constexpr int kFixedLength = 256;
__device__ inline float SumOfBytes(int lowest, int low, int high, int highest) {
  const int upper = (highest << 8) + high;
  const unsigned lower = (static_cast<unsigned>(low) << 8) + static_cast<unsigned>(lowest);
  return __ll2float_rn(static_cast<long long>(upper) * 65536 + lower);
}

}  // namespace uper
