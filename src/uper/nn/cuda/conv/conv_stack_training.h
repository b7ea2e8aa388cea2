#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper {

// The three convolutions of the Atari network in one kernel, for training: the results of all of
// them are kept, and there are as many pictures as fill a large GPU with two blocks each. A block
// has half of the first layer's rows and half of the other layers' filters; what it finds goes from
// its shared memory to the other's. The first layer has the sums of LaunchExactPixelConvolution();
// what is not a number in one layer is not one in the next either.

struct PicturePair {
  static constexpr int kLayers = PictureStack::kLayers;
  static constexpr int kMaxPasses = 3;
  struct Pass {
    const std::uint8_t* pixels = nullptr;  // [count, channel, height, width]
    const float* w[kLayers] = {};          // [kernel row, kernel column, channel, filter]
    const float* bias[kLayers] = {};       // [filter]
    float* out[kLayers] = {};              // [count, row, column, filter]
  };

  float scale = 1;  // of a pixel
  int count = 1;
  int passes = 1;
  Pass list[kMaxPasses];
  Follow follow = Follow::kAfter;  // as in PixelConvolution
};

// For layers that suit a PictureStack. Operands must be aligned to 16 bytes.
void LaunchPicturePairs(const PicturePair& call, cudaStream_t stream);

}  // namespace uper
