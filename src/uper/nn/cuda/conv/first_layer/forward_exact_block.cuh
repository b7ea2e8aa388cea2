#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "uper/nn/cuda/conv/first_layer/forward_exact_tile.cuh"
#include "uper/nn/cuda/conv/first_layer/warp_tile_tf32.cuh"
#include "uper/nn/cuda/ptx/fixed_point.cuh"
#include "uper/nn/cuda/ptx/mma.cuh"
#include "uper/nn/network_spec.h"

namespace uper::cuda {

// The work of a block of 8 warps in the first convolution with exact sums. A warp computes 8
// filters, with all their weights in registers, at every kSharers-th pair of tiles of windows.
// Warps whose numbers differ by 4 use the same tensor cores and have the same amount of work.
struct ExactPixelBlock {
  static constexpr int kWarp = 32;
  static constexpr int kGroups = kPixelFilters / kTileFilters;
  static constexpr int kSharers = 2;
  static constexpr int kWarps = kGroups * kSharers;
  static constexpr int kThreads = kWarps * kWarp;

  // Weights in shared memory: four rows of the kernel are read at once, so rows are padded by 8
  // banks.
  static constexpr int kWeightRow = kPixelKernel * kPixelChannels * kPixelFilters;
  static constexpr int kWeightPitch = kWeightRow + 8;
  static constexpr int kWeights = kPixelKernel * kWeightPitch;  // floats

  __device__ static void StartWeights(const float* w, float* weights) {
    static_assert(4 * kThreads >= kWeightRow);
    const int at = 4 * static_cast<int>(threadIdx.x);
    if (at >= kWeightRow) return;
#pragma unroll
    for (int row = 0; row < kPixelKernel; ++row) {
      __pipeline_memcpy_async(weights + row * kWeightPitch + at, w + row * kWeightRow + at,
                              4 * sizeof(float));
    }
  }

  // `image` starts at the first row. A warp handles every other row of a channel's tiles, a lane
  // one column.
  __device__ static void StartPixels(const std::uint8_t* image, const ImageShape& in,
                                     const PixelBlocks& blocks, uint4* pixels) {
    static_assert(kWarps % kPixelChannels == 0 && kSharePositions / 2 + 1 <= kWarp);
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int channel = warp % kPixelChannels;
    const int columns = in.width / 4;
    if (lane >= columns) return;
    const auto* from =
        reinterpret_cast<const unsigned*>(image) + channel * in.height * columns + lane;
    uint4* to = pixels + channel * blocks.rows * blocks.pitch + lane;
    for (int row = warp / kPixelChannels; row < blocks.rows; row += kWarps / kPixelChannels) {
      auto* block = reinterpret_cast<unsigned*>(to + row * blocks.pitch);
#pragma unroll
      for (int line = 0; line < 4; ++line) {
        __pipeline_memcpy_async(block + line, from + (4 * row + line) * columns, sizeof(unsigned));
      }
    }
  }

  // A lane's weights, for ConvolvePair().
  struct LaneWeights {
    StepWeights steps[kTileSteps];

    // Returns the filter's unit.
    __device__ float Load(const float* weights, int first_filter, int lane) {
      weights += MmaPlace(lane) * kWeightPitch + first_filter + MmaGroup(lane);
      float values[kTileSteps][2][4];
      unsigned largest = 0;
#pragma unroll
      for (int i = 0; i < kTileSteps * kPixelKernel; ++i) {
        const int step = i / kPixelKernel;
        const int column = i % kPixelKernel;
        const float value =
            weights[step % kWindowHalves * 4 * kWeightPitch +
                    (column * kPixelChannels + step / kWindowHalves) * kPixelFilters];
        values[step][column / 4][column % 4] = value;
        largest = max(largest, MagnitudeBits(value));
      }
      largest = max(largest, __shfl_xor_sync(~0U, largest, 1));
      largest = max(largest, __shfl_xor_sync(~0U, largest, 2));
      const FixedPoint fixed(largest);
#pragma unroll
      for (int i = 0; i < kTileSteps * 2; ++i) {
        unsigned words[kWholeBytes];
        CutIntoBytes(fixed, values[i / 2][i % 2], words);
#pragma unroll
        for (int byte = 0; byte < kWholeBytes; ++byte) {
          steps[i / 2].bytes[byte][i % 2] = words[byte];
        }
      }
      return fixed.unit();
    }

    __device__ const StepWeights& operator()(int step) const { return steps[step]; }
  };

  // Computes all windows; weights and pixels are in shared memory. Calls store(window, filter,
  // results) with the results of that filter and the next.
  template <typename Store>
  __device__ static void Convolve(const PixelWindows& windows, const float* weights, float scale,
                                  const float* bias, const Store& store) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int first_filter = warp % kGroups * kTileFilters;
    LaneWeights mine;
    const float unit = mine.Load(weights, first_filter, lane);
    const LaneFinish epilogue(unit, scale, bias + first_filter, lane);
    const int filter = first_filter + 2 * MmaPlace(lane);
#pragma unroll 1
    for (int first = warp / kGroups * kPairWindows; first < windows.count;
         first += kSharers * kPairWindows) {
      ConvolvePair(windows, mine, epilogue, first, lane,
                   [&](int window, const float2& two) { store(window, filter, two); });
    }
  }
};

}  // namespace uper::cuda
