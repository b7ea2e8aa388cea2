#pragma once

namespace uper {

// What is not a number stays so.
__device__ inline float Relu(float x) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(0.0F));
  return result;
}

// Of sums of four neighbours and their biases.
__device__ inline float4 Relu(const float4& sum, const float4& bias) {
  return make_float4(Relu(sum.x + bias.x), Relu(sum.y + bias.y), Relu(sum.z + bias.z),
                     Relu(sum.w + bias.w));
}

}  // namespace uper
