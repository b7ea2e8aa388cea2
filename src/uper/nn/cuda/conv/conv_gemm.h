#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// Convolutions of small images, forward and backward. A block holds a whole image and its share of
// the weights in shared memory, and reads each of them only once. Sums are in double precision (see
// double_mma.cuh); the sums of a block's warps are added as floats.
//
//   C[y, x, n] = sum over taps (i, j) and channels c of
//                A[window(y, x) + tap(i, j), c] * B[i, j, c, n]

// An offset that is linear in a row and a column.
struct Affine {
  int first = 0, row = 0, column = 0;
};

struct ConvGemm {
  int height = 1, width = 1;  // of the results
  int tap_rows = 1, tap_columns = 1;
  const float* a = nullptr;  // [image, pixel, channel]
  Affine windows, taps;      // in pixels
  const float* b = nullptr;
  Affine b_taps;  // in floats: offset of B[i, j]; kOutput: all taps are contiguous
  // As in Gemm, for the first image.
  const float* bias = nullptr;
  const float* mask = nullptr;
  Affine mask_at;
  float* c = nullptr;
  Affine c_at;
};

// The GEMMs of one launch.
struct ConvGemmBatch {
  static constexpr int kMaxGemms = 4;

  ConvGemm gemms[kMaxGemms];
  int count = 1;
  int images = 1;
  int pixels = 1;    // per image of A
  int channels = 8;  // of A: a multiple of 8
  int columns = 32;  // n: a multiple of 32, or of 16 if blocks are narrow
  // Blocks have 16 columns instead of 32. Useful where blocks of 32 columns would leave half of a
  // large GPU idle. The sums differ from those of wide blocks.
  bool narrow = false;
  // The warps of a narrow block split the channels (kOutput only) instead of the sequence of taps
  // and channels. The sums are those of LaunchConvStackTraining().
  bool by_channels = false;
  // B[i, j] is [channel, column] if its columns are contiguous (kOutput), else [column, channel].
  Contiguous b_contiguous = Contiguous::kOutput;
  int mask_image = 0, c_image = 0;  // floats from one image to the next
  GemmEpilogue epilogue = GemmEpilogue::kStore;
  LaunchOrder order = LaunchOrder::kSerial;
};

// Whether LaunchConvGemms() supports the call: results, image and weights of a block must fit.
// Operands must be aligned to 16 bytes.
bool SupportsConvGemms(const ConvGemmBatch& call);

void LaunchConvGemms(const ConvGemmBatch& call, cudaStream_t stream);

}  // namespace uper::cuda
