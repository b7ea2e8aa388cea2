#pragma once

#include "uper/nn/cuda/ptx/mma.cuh"
#include "uper/nn/cuda/ptx/warp_tile.cuh"

namespace uper::cuda {

// The work of a warp in the first convolution: two rows of outputs from one channel, at most
// kSharePositions positions. `window(position)`: where a position's pixels begin, [row][width].

inline constexpr int kPixelKernel = 8;
inline constexpr int kPixelStride = 4;
inline constexpr int kPixelChannels = 4;
inline constexpr int kPixelFilters = 32;
inline constexpr int kSharePositions = 40;

// sums += a * (low, high).
__device__ inline void AddEight(float a, const float4& low, const float4& high, float (&sums)[8]) {
  sums[0] = fmaf(a, low.x, sums[0]);
  sums[1] = fmaf(a, low.y, sums[1]);
  sums[2] = fmaf(a, low.z, sums[2]);
  sums[3] = fmaf(a, low.w, sums[3]);
  sums[4] = fmaf(a, high.x, sums[4]);
  sums[5] = fmaf(a, high.y, sums[5]);
  sums[6] = fmaf(a, high.z, sums[6]);
  sums[7] = fmaf(a, high.w, sums[7]);
}

// On tensor cores, with weights as kTerms numbers of 11 bits. Pixels have 8 bits and are exact, so
// one number is enough; they are scaled afterwards.
template <int kTerms>
struct MmaPixelShare {
  static constexpr int kTaps = kPixelKernel * kPixelKernel;  // per channel
  static constexpr int kWeightStride = kPixelFilters + 8;    // spreads taps over the banks
  static constexpr int kWeights = kPixelChannels * kTaps * kWeightStride;
  static constexpr int kSumsStride = kPixelFilters + 8;

  // Positions and filters come in groups of 8; two groups of positions make a tile of the hardware.
  // The sixth group of positions is empty.
  static constexpr int kGroupsM = kSharePositions / 8;
  static constexpr int kGroupsN = kPixelFilters / 8;
  struct Sums {
    float sums[(kGroupsM + 1) / 2][kGroupsN][4] = {};  // see AddMma()
  };

  // Writes [channel][tap][filter] from parameters [tap][channel][filter].
  __device__ static int PlaceOfWeight(int i) {
    const int channel = i / kPixelFilters % kPixelChannels;
    const int tap = i / (kPixelFilters * kPixelChannels);
    return (channel * kTaps + tap) * kWeightStride + i % kPixelFilters;
  }

  template <typename Window>
  __device__ static void Multiply(const float* pixels, int width, const Window& window,
                                  const float* weights, int channel, int lane, Sums& result) {
    int at[kGroupsM];
#pragma unroll
    for (int i = 0; i < kGroupsM; ++i) {
      at[i] = window(8 * i + MmaGroup(lane)) + MmaPlace(lane);
    }
    weights += (channel * kTaps + MmaPlace(lane)) * kWeightStride + MmaGroup(lane);
#pragma unroll(3 - kTerms)
    for (int row = 0; row < kPixelKernel; ++row) {  // its 8 taps at once
      unsigned b_terms[kGroupsN][kTerms][2];
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
        const float* w = weights + row * kPixelKernel * kWeightStride + 8 * j;
        const float two[2] = {w[0], w[4 * kWeightStride]};
        SplitIntoTf32(two, b_terms[j]);
      }
#pragma unroll
      for (int i = 0; i < kGroupsM; i += 2) {
        unsigned a[1][4] = {};  // [step][row]
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (i + e % 2 >= kGroupsM) continue;
          a[0][e] = __float_as_uint(pixels[at[i + e % 2] + row * width + e / 2 * 4]);
        }
#pragma unroll
        for (int j = 0; j < kGroupsN; ++j) AddMma(a, b_terms[j], result.sums[i / 2][j]);
      }
    }
  }

  // Stores to sums [position][kSumsStride].
  __device__ static void Store(const Sums& result, int lane, float* sums) {
    StoreMma<kGroupsM>(result.sums, lane, kSumsStride, sums);
  }
};

}  // namespace uper::cuda
