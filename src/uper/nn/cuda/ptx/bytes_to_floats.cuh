#pragma once

#include <cuda_runtime.h>

namespace uper::cuda {

// Four bytes as floats. A byte in the lowest bits of the float 2^23 is that float plus the byte.
// This is cheaper than a conversion.
__device__ inline float4 Widen(unsigned pixels) {
  constexpr float kTwo23 = 8388608.0F;
  const auto value = [&](unsigned selector) {
    return __uint_as_float(__byte_perm(pixels, 0x4b000000U, selector)) - kTwo23;
  };
  return make_float4(value(0x7540), value(0x7541), value(0x7542), value(0x7543));
}

__device__ inline float4 Widen(unsigned pixels, float scale) {
  const float4 four = Widen(pixels);
  return make_float4(scale * four.x, scale * four.y, scale * four.z, scale * four.w);
}

}  // namespace uper::cuda
