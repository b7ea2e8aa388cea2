#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper {

// Convolutions of small pictures, forward and backward: a block has a whole picture and its share
// of the weights in shared memory, and reads each of them only once. Sums are in double precision,
// see double_mma.cuh; those of a block's warps are added as floats.
//
//   C[y, x, n] = sum over taps (i, j) and channels c of
//                A[window(y, x) + tap(i, j), c] * B[i, j, c, n]

// An offset that is linear in a row and a column.
struct Affine {
  int first = 0, row = 0, column = 0;
};

struct PictureProduct {
  int height = 1, width = 1;  // of the results
  int tap_rows = 1, tap_columns = 1;
  const float* a = nullptr;  // [picture, pixel, channel]
  Affine windows, taps;      // in pixels
  const float* b = nullptr;
  Affine b_taps;  // in floats: where B[i, j] begins; kSide: all taps are one piece
  // As in Product, of the first picture.
  const float* bias = nullptr;
  const float* mask = nullptr;
  Affine mask_at;
  float* c = nullptr;
  Affine c_at;
};

// Products of one launch.
struct PictureCall {
  static constexpr int kMaxProducts = 4;

  PictureProduct products[kMaxProducts];
  int count = 1;
  int pictures = 1;
  int pixels = 1;    // of a picture of A
  int channels = 8;  // of A; a multiple of 8
  int columns = 32;  // n: a multiple of 32, or of 16 if blocks are narrow
  // Blocks have 16 columns instead of 32: where these would leave half of a large GPU without work.
  // The sums are others.
  bool narrow = false;
  // Warps of a narrow block have some of the channels each (kSide only), instead of a run of taps
  // and channels. The sums are those of LaunchPicturePairs().
  bool by_channels = false;
  // B[i, j] is [channel, column] if its columns lie along memory (kSide), else [column, channel].
  Along b_along = Along::kSide;
  int mask_picture = 0, c_picture = 0;  // floats from one picture to the next
  ProductFinish finish = ProductFinish::kStore;
  Follow follow = Follow::kAfter;
};

// Whether LaunchPictures() can do the call: results, picture and weights of a block must fit.
// Operands must be aligned to 16 bytes.
bool SuitsPictures(const PictureCall& call);

void LaunchPictures(const PictureCall& call, cudaStream_t stream);

}  // namespace uper
