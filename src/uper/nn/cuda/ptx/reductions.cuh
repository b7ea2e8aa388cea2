#pragma once

namespace uper::cuda {

// Sums in an order that does not depend on timing.

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

// Sum of all lanes, returned to all lanes, by a fixed tree.
template <typename T>
__device__ T WarpSum(T value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

template <typename T>
__device__ T WarpMax(T value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

// Sum of all threads of the block, returned to all of them. `scratch` holds 32 entries and may be
// reused after the next __syncthreads().
template <typename T>
__device__ T BlockSum(T value, T* scratch) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int warps = (static_cast<int>(blockDim.x) + kWarpSize - 1) / kWarpSize;
  value = WarpSum(value);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) scratch[warp] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < warps; ++i) sum += scratch[i];
  return sum;
}

}  // namespace uper::cuda
