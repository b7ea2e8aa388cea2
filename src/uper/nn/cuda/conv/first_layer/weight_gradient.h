#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"

namespace uper::cuda {

// The gradient of the weights of the first convolution of the Atari network (see
// FirstLayerForward), from bytes:
//
//   d_w[i, j, c, f] = scale * sum over images, y and x of
//                     pixel[c, 4 y + i, 4 x + j] d_out[y, x, f]
//
// Within an image, tensor cores add whole numbers. The d_out of a filter are rounded to 32 bits
// that begin with the largest of them (see FixedPoint). Their sums with pixels are exact and are
// rounded to float once, so they are more accurate than fp32 sums. Images are added up in fp32, in
// order. If a d_out is not finite, all results of its filter are NaN.

struct FirstLayerWeightGradient {
  ImageShape in, out;
  float scale = 1;  // of a pixel value
  int count = 1;
  // [count, channel, height, width]. With LaunchOrder::kOverlapPrevious they are read before the
  // previous kernel ends, so they must have been written before that kernel started.
  const std::uint8_t* pixels = nullptr;  // 4-byte aligned
  const float* d_out = nullptr;          // [count, row, column, filter]
  float* parts = nullptr;   // [FirstLayerWeightGradientParts()], 8-byte aligned: scratch
  float* d_w = nullptr;     // [kernel row, kernel column, channel, filter]
  float* d_bias = nullptr;  // [filter]
  double* squares =
      nullptr;  // [FirstLayerWeightGradientSquares()]: partial sums of the squared results
  LaunchOrder order = LaunchOrder::kSerial;
};

// Whether LaunchFirstLayerWeightGradient() supports this layer: with too many positions the sums
// would not be exact. REQUIRES: SupportsFirstLayerForward() holds for the layer.
bool SupportsFirstLayerWeightGradient(const ImageShape& out);

std::size_t FirstLayerWeightGradientParts(int count);
int FirstLayerWeightGradientSquares();

void LaunchFirstLayerWeightGradient(const FirstLayerWeightGradient& call, cudaStream_t stream);

}  // namespace uper::cuda
