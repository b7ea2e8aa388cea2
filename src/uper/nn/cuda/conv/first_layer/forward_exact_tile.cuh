#pragma once

#include <cuda_runtime.h>

#include "uper/nn/cuda/conv/first_layer/warp_tile_tf32.cuh"
#include "uper/nn/cuda/ptx/byte_mma.cuh"
#include "uper/nn/cuda/ptx/fixed_point.cuh"
#include "uper/nn/cuda/ptx/mma.cuh"
#include "uper/nn/cuda/ptx/relu.cuh"

namespace uper::cuda {

// The work of a warp in the first convolution with exact sums: tiles of 16 windows and 8 filters on
// tensor cores, one byte of the whole-number weights at a time.

inline constexpr int kTileWindows = 16;
inline constexpr int kPairWindows = 2 * kTileWindows;
inline constexpr int kTileFilters = 8;

// The 32 steps of an MMA are a channel's four rows of a window. Order: rows of the first four
// columns, then of the other columns.
inline constexpr int kWindowHalves = kPixelKernel / kPixelStride;
inline constexpr int kTileSteps = kPixelChannels * kWindowHalves;
static_assert(kPixelStride == 4 && kWindowHalves == 2);

// Pixels in shared memory: tiles of 4 x 4, [channel][row of tiles][column]. A window is 2 x 2
// tiles. Where windows continue in the next row, their banks continue too: 8 tiles lie in different
// banks.
struct PixelBlocks {
  static constexpr int kGap = 8;
  int rows, pitch;

  __host__ __device__ constexpr PixelBlocks(int out_rows, int out_width)
      : rows(out_rows + 1), pitch(out_width + kGap) {}
  __device__ int OfStep(int step) const {
    return (step / kWindowHalves * rows + step % kWindowHalves) * pitch;
  }
  __host__ __device__ constexpr int plane() const { return rows * pitch; }
  __host__ __device__ constexpr int size() const { return kPixelChannels * plane(); }
};

// All windows of some rows.
class PixelWindows {
 public:
  __device__ PixelWindows(const uint4* pixels, int out_rows, int out_width)
      : blocks(out_rows, out_width),
        count(out_rows * out_width),
        pixels_(pixels),
        inverse_((0xffff + out_width) / out_width) {}

  // A window's first tile, without a division. REQUIRES: count * width < 2^16.
  __device__ const uint4* operator[](unsigned window) const {
    return pixels_ + (window + (window * inverse_ >> 16) * PixelBlocks::kGap);
  }

  const PixelBlocks blocks;
  const int count;

 private:
  const uint4* pixels_;
  unsigned inverse_;
};

// A lane's weights in one step, for AddByteMma(): of one filter, one row and one channel.
struct StepWeights {
  unsigned bytes[kWholeBytes][2];  // [byte][half of the columns]
};

// The bytes of four weights; words [byte].
__device__ inline void CutIntoBytes(const FixedPoint& fixed, const float (&weights)[4],
                                    unsigned (&words)[kWholeBytes]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = static_cast<unsigned>(fixed.Whole(weights[i]));
  TransposeBytes(words);
}

// The result of the sums of bytes times pixels, rounded once.
__device__ inline float SumOfBytes(int lowest, int low, int high, int highest) {
  // Two neighboring bytes fit into 32 bits: (256 * 128 + 255) * 255 * 256 is less than 2^31.
  static_assert(kTileSteps * 32 == 256);
  const int upper = (highest << 8) + high;
  const unsigned lower = (static_cast<unsigned>(low) << 8) + static_cast<unsigned>(lowest);
  return __ll2float_rn(static_cast<long long>(upper) * 65536 + lower);
}

// Turns the sums of a lane's two filters into results.
struct LaneFinish {
  float scale[2], bias[2];

  // `unit`: of filter MmaGroup(lane). `filters`: the bias of all 8 filters.
  __device__ LaneFinish(float unit, float pixel_scale, const float* filters, int lane) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int filter = 2 * MmaPlace(lane) + i;
      scale[i] = pixel_scale * __shfl_sync(~0U, unit, 4 * filter);  // from a lane that has it
      bias[i] = __ldg(filters + filter);
    }
  }
  __device__ float operator()(const int (&sums)[kWholeBytes][4], int at) const {
    const float sum = SumOfBytes(sums[0][at], sums[1][at], sums[2][at], sums[3][at]);
    return Relu(fmaf(scale[at % 2], sum, bias[at % 2]));
  }
};

// Computes kTiles tiles, starting at window `first`. `weights(step)`: the lane's StepWeights. Calls
// store(window, results) with the results of the lane's two filters.
template <int kTiles, typename Weights, typename Store>
__device__ void ConvolveTiles(const PixelWindows& windows, const Weights& weights,
                              const LaneFinish& epilogue, int first, int lane, const Store& store) {
  const uint4* from[kTiles];  // the lane's address, see LoadByteRows()
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int window = min(first + tile * kTileWindows + lane % kTileWindows, windows.count - 1);
    from[tile] = windows[window] + lane / kTileWindows;
  }
  int sums[kTiles][kWholeBytes][4] = {};
#pragma unroll
  for (int step = 0; step < kTileSteps; ++step) {
    const StepWeights& w = weights(step);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      unsigned a[4];
      LoadByteRows(from[tile] + windows.blocks.OfStep(step), a);
      AddByteMma(a, w.bytes[0], sums[tile][0]);
      AddByteMma(a, w.bytes[1], sums[tile][1]);
      AddByteMma(a, w.bytes[2], sums[tile][2]);
      AddSignedByteMma(a, w.bytes[3], sums[tile][3]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    const int window = first + 8 * i + MmaGroup(lane);
    const int at = i % 2 * 2;
    const float2 two = make_float2(epilogue(sums[i / 2], at), epilogue(sums[i / 2], at + 1));
    if (window < windows.count) store(window, two);
  }
}

// Two tiles, which keep the tensor cores busier than one, or the last tile alone.
template <typename Weights, typename Store>
__device__ void ConvolvePair(const PixelWindows& windows, const Weights& weights,
                             const LaneFinish& epilogue, int first, int lane, const Store& store) {
  if (first + kTileWindows < windows.count) {
    ConvolveTiles<2>(windows, weights, epilogue, first, lane, store);
  } else {
    ConvolveTiles<1>(windows, weights, epilogue, first, lane, store);
  }
}

}  // namespace uper::cuda
