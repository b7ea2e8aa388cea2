#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"
#include "uper/nn/precision.h"

namespace uper::cuda {

// The first convolution of the Atari network, computed from bytes: 4 channel planes, 32 filters of
// 8 x 8 with stride 4, ReLU. A block keeps its pixels and all weights in shared memory.

struct FirstLayerForward {
  static constexpr int kMaxPasses = 3;
  struct Pass {
    const std::uint8_t* pixels = nullptr;  // [count, channel, height, width]
    const float* w = nullptr;              // [kernel row, kernel column, channel, filter]
    const float* bias = nullptr;           // [filter]
    float* out = nullptr;                  // [count, row, column, filter]
  };

  ImageShape in, out;
  float scale = 1;  // of a pixel value
  int count = 1;
  int passes = 1;
  Pass list[kMaxPasses];
  Precision precision = Precision::kFp32;
  // With LaunchOrder::kOverlapPrevious the pixels are read before the previous kernel ends, so they
  // must have been written before that kernel started. Kernels after this one start when it has
  // ended.
  LaunchOrder order = LaunchOrder::kSerial;
};

// Whether LaunchFirstLayerForward() supports this layer. Weights must be 16-byte aligned.
bool SupportsFirstLayerForward(const InputSpec& input, const ConvolutionSpec& layer);

void LaunchFirstLayerForward(const FirstLayerForward& call, cudaStream_t stream);

}  // namespace uper::cuda
