#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "uper/nn/cuda/conv/conv_gradient_reduce.h"
#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"

namespace uper::cuda {

// The gradient of the weights of convolutions of small images, in plain fp32:
//
//   d_w[i, j, c, f] = sum over images, y and x of
//                     x[stride y + i, stride x + j, c] d_out[y, x, f]
//
// One kernel computes partial sums over few images. A second kernel adds up the parts of several
// layers. The order of additions depends only on the shapes.

struct ConvWeightGradient {
  ImageShape in, out;
  ConvolutionSpec spec;
  int count = 1;                 // images
  const float* x = nullptr;      // [count, row, column, channel]
  const float* d_out = nullptr;  // [count, row, column, filter]: the first position
  int d_row = 0, d_image = 0;    // floats from one row (or image) of d_out to the next
  float* parts = nullptr;        // [ConvWeightGradientParts()]: scratch
  float* d_w = nullptr;          // [kernel row, kernel column, channel, filter]
  float* d_bias = nullptr;       // [filter]
  double* squares = nullptr;  // [ConvWeightGradientSquares()]: partial sums of the squared results
};

// Whether there is a kernel for the layer. All arrays must be aligned to 16 bytes.
bool SupportsConvWeightGradient(const ImageShape& in, const ImageShape& out,
                                const ConvolutionSpec& spec);

// Sizes of arrays; they do not depend on the pointers.
std::size_t ConvWeightGradientParts(const ConvWeightGradient& call);
int ConvWeightGradientSquares(const ConvWeightGradient& call);

// Writes `parts`.
void LaunchConvWeightGradient(const ConvWeightGradient& call, cudaStream_t stream);

// Computes d_w, d_bias and squares from the parts of at most kMaxGradientReductions layers.
void LaunchConvGradientReduce(std::span<const ConvWeightGradient> calls, cudaStream_t stream,
                              LaunchOrder order = LaunchOrder::kSerial);

}  // namespace uper::cuda
