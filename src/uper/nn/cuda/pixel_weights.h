#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/follow.h"
#include "uper/nn/network_spec.h"

namespace uper {

// The gradient of the weights of the first convolution of the Atari network (see PixelConvolution),
// from pixels as they come, in plain fp32:
//
//   d_w[i, j, c, f] = scale * sum over pictures, y and x of pixel[c, 4 y + i, 4 x + j] d_out[y, x,
//   f]
//
// The order of additions depends on the shapes only.

struct PixelWeights {
  PictureShape in, out;
  float scale = 1;  // of a pixel
  int count = 1;
  // [count, channel, height, width]. With Follow::kOverlap they are read before the kernel before
  // this one ends: they must have been there when that one was started.
  const std::uint8_t* pixels = nullptr;
  const float* d_out = nullptr;  // [count, row, column, filter], 16-byte aligned
  float* parts = nullptr;        // [PixelWeightParts()], 16-byte aligned: scratch
  float* d_w = nullptr;          // [kernel row, kernel column, channel, filter]
  float* d_bias = nullptr;       // [filter]
  double* squares = nullptr;     // [PixelWeightSquares()]: sums over parts of the squared results
  Follow follow = Follow::kAfter;
};

// Whether LaunchPixelWeights() can do this layer, for which SuitsPixelConvolution() holds: a
// picture may be too high.
bool SuitsPixelWeights(const PictureShape& in, const PictureShape& out);

std::size_t PixelWeightParts(int count);
int PixelWeightSquares();

void LaunchPixelWeights(const PixelWeights& call, cudaStream_t stream);

}  // namespace uper
