#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"
#include "uper/nn/precision.h"

namespace uper {

// The first convolution of the Atari network, on pixels as they come: 4 planes of bytes, 32 filters
// of 8 x 8 at stride 4, ReLU. A block keeps its pixels and all weights in shared memory, so that it
// does nothing but multiply.

struct PixelConvolution {
  static constexpr int kMaxPasses = 3;
  struct Pass {
    const std::uint8_t* pixels = nullptr;  // [count, channel, height, width]
    const float* w = nullptr;              // [kernel row, kernel column, channel, filter]
    const float* bias = nullptr;           // [filter]
    float* out = nullptr;                  // [count, row, column, filter]
  };

  ImageShape in, out;
  float scale = 1;  // of a pixel
  int count = 1;
  int passes = 1;
  Pass list[kMaxPasses];
  Precision precision = Precision::kFp32;
  // With Follow::kOverlap the pixels are read before the kernel before this one ends: they must
  // have been there when that one was started. Those behind this one start when it has ended.
  Follow follow = Follow::kAfter;
};

// Whether LaunchPixelConvolution() can do this layer. Weights must be 16-byte aligned.
bool SuitsPixelConvolution(const InputSpec& input, const ConvolutionSpec& layer);

void LaunchPixelConvolution(const PixelConvolution& call, cudaStream_t stream);

}  // namespace uper
