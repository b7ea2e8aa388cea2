#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/conv/first_layer/warp_tile_tf32.cuh"
#include "uper/nn/cuda/ptx/byte_mma.cuh"
#include "uper/nn/network_spec.h"

namespace uper::cuda {

// Channel planes of pixels in shared memory, arranged for sums over positions (see AddByteMma()).
// Windows are 4 pixels apart, so the pixels that one tap meets in four neighboring windows are 4
// apart, too. A unit holds 16 pixels of a row; its word j holds every fourth pixel from pixel j on.
// So unit x of a row is what taps 0 to 3 meet in windows 4 x to 4 x + 3, one word per tap. For taps
// 4 to 7 the windows are one byte further.

inline constexpr int kColumnPositions = kSharePositions / 2;  // maximum per row of windows
inline constexpr int kColumnWindowRows = 20;                  // in memory at a time
inline constexpr int kColumnRows = (kColumnWindowRows - 1) * kPixelStride + kPixelKernel;
inline constexpr int kColumnUnits = (kColumnPositions + 1 + 3) / 4;  // per row of pixels

// Lanes read the same unit of 8 neighboring rows in 4 neighboring rows of windows. These lie in
// different banks, for 8 lanes at a time.
inline constexpr int kColumnRowPitch = 7;
inline constexpr int kColumnFourRowsPitch = 30;
static_assert(kColumnUnits <= kColumnRowPitch);
static_assert(kPixelStride == 4 && kPixelStride * kColumnRowPitch <= kColumnFourRowsPitch);
inline constexpr int kColumnPlane = kColumnRows / 4 * kColumnFourRowsPitch;  // units

__device__ inline int PlaceOfColumns(int row, int unit) {
  return row / 4 * kColumnFourRowsPitch + row % 4 * kColumnRowPitch + unit;
}

// Loads the pixels of an image, with all kThreads threads of a block. Pixels outside the image are
// undefined: no window meets them.
template <int kThreads>
class PixelColumnsFetch {
 public:
  // `pixels`: of all channel planes, 4-byte aligned.
  __device__ PixelColumnsFetch(const std::uint8_t* pixels, const ImageShape& shape)
      : from_(reinterpret_cast<const unsigned*>(pixels)),
        height_(shape.height),
        row_words_(shape.width / 4),
        row_(static_cast<int>(threadIdx.x) / kColumnUnits),
        unit_(static_cast<int>(threadIdx.x) % kColumnUnits) {}

  // Starts to load the first pixels, which Store() writes.
  __device__ void Start() {
#pragma unroll
    for (int i = 0; i < kItems; ++i) Load(0, i, words_[i]);
  }

  // Writes to planes of kColumnPlane units.
  __device__ void Store(uint4* planes) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) StoreUnit(i, words_[i], planes);
  }

  // Loads and stores the pixels from this row on, when there is no register to spare.
  __device__ void Bring(int first_row, uint4* planes) const {
#pragma unroll 1
    for (int i = 0; i < kItems; ++i) {
      unsigned words[4];
      Load(first_row, i, words);
      StoreUnit(i, words, planes);
    }
  }

 private:
  // A thread has the same unit in some rows of every plane: [plane][round].
  static constexpr int kRounds = (kColumnRows * kColumnUnits + kThreads - 1) / kThreads;
  static constexpr int kRoundRows = kColumnRows / kRounds;
  static_assert(kColumnRows % kRounds == 0 && kRoundRows * kColumnUnits <= kThreads);
  static constexpr int kItems = kPixelChannels * kRounds;

  __device__ int RowOf(int item) const { return item % kRounds * kRoundRows + row_; }

  __device__ void Load(int first_row, int item, unsigned (&words)[4]) const {
    const int row = item / kRounds * height_ + min(first_row + RowOf(item), height_ - 1);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = __ldg(from_ + row * row_words_ + min(4 * unit_ + i, row_words_ - 1));
    }
  }

  __device__ void StoreUnit(int item, unsigned (&words)[4], uint4* planes) const {
    if (row_ >= kRoundRows) return;  // this thread has no row
    TransposeBytes(words);
    planes[item / kRounds * kColumnPlane + PlaceOfColumns(RowOf(item), unit_)] =
        make_uint4(words[0], words[1], words[2], words[3]);
  }

  const unsigned* from_;
  int height_, row_words_, row_, unit_;
  unsigned words_[kItems][4];
};

}  // namespace uper::cuda
