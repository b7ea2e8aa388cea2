#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "uper/nn/cuda/conv/conv_gradient_reduce.h"
#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"

namespace uper {

// The gradient of the weights of convolutions of small pictures, in plain fp32:
//
//   d_w[i, j, c, f] = sum over pictures, y and x of
//                     x[stride y + i, stride x + j, c] d_out[y, x, f]
//
// One kernel forms the sums over few pictures, a second one adds those up, of several layers at
// once. The order of additions depends on the shapes only.

struct PictureWeights {
  ImageShape in, out;
  ConvolutionSpec spec;
  int count = 1;                 // pictures
  const float* x = nullptr;      // [count, row, column, channel]
  const float* d_out = nullptr;  // [count, row, column, filter]: of the first position
  int d_row = 0, d_picture = 0;  // floats from one row, and picture, of d_out to the next
  float* parts = nullptr;        // [PictureWeightParts()]: scratch
  float* d_w = nullptr;          // [kernel row, kernel column, channel, filter]
  float* d_bias = nullptr;       // [filter]
  double* squares = nullptr;     // [PictureWeightSquares()]: sums over parts of squared results
};

// Whether there is a kernel for the layer. All arrays must be aligned to 16 bytes.
bool SuitsPictureWeights(const ImageShape& in, const ImageShape& out, const ConvolutionSpec& spec);

// Sizes of arrays; they do not depend on the pointers.
std::size_t PictureWeightParts(const PictureWeights& call);
int PictureWeightSquares(const PictureWeights& call);

// Writes parts.
void LaunchPictureWeights(const PictureWeights& call, cudaStream_t stream);

// From the parts of at most kMostPartSums layers d_w, d_bias and squares.
void LaunchPictureSums(std::span<const PictureWeights> calls, cudaStream_t stream,
                       Follow follow = Follow::kAfter);

}  // namespace uper
