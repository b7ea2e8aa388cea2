#pragma once

namespace uper::cuda {

// NaN stays NaN.
__device__ inline float Relu(float x) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(0.0F));
  return result;
}

// ReLU of sums of four neighbors and their biases.
__device__ inline float4 Relu(const float4& sum, const float4& bias) {
  return make_float4(Relu(sum.x + bias.x), Relu(sum.y + bias.y), Relu(sum.z + bias.z),
                     Relu(sum.w + bias.w));
}

}  // namespace uper::cuda
