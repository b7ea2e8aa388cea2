#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"

namespace uper {

// The gradient of the weights of the first convolution of the Atari network (see PixelConvolution),
// from pixels as they come:
//
//   d_w[i, j, c, f] = scale * sum over pictures, y and x of pixel[c, 4 y + i, 4 x + j] d_out[y, x,
//   f]
//
// Within a picture in whole numbers, on tensor cores: the d_out of a filter are rounded to 32 bits
// that begin with the largest of them (see FixedPoint), their sums with pixels are exact and become
// a float once, more exact than sums in fp32. Pictures are added up in fp32, in order. If a d_out
// is not finite, all results of its filter are not a number.

struct PixelWeights {
  ImageShape in, out;
  float scale = 1;  // of a pixel
  int count = 1;
  // [count, channel, height, width]. With Follow::kOverlap they are read before the kernel before
  // this one ends: they must have been there when that one was started.
  const std::uint8_t* pixels = nullptr;  // 4-byte aligned
  const float* d_out = nullptr;          // [count, row, column, filter]
  float* parts = nullptr;                // [PixelWeightParts()], 8-byte aligned: scratch
  float* d_w = nullptr;                  // [kernel row, kernel column, channel, filter]
  float* d_bias = nullptr;               // [filter]
  double* squares = nullptr;  // [PixelWeightSquares()]: sums over parts of the squared results
  Follow follow = Follow::kAfter;
};

// Whether LaunchPixelWeights() can do this layer, for which SuitsPixelConvolution() holds: there
// may be too many positions for exact sums.
bool SuitsPixelWeights(const ImageShape& out);

std::size_t PixelWeightParts(int count);
int PixelWeightSquares();

void LaunchPixelWeights(const PixelWeights& call, cudaStream_t stream);

}  // namespace uper
