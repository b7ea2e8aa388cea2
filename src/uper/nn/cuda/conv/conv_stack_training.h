#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// The three convolutions of the Atari network in one kernel, for training: it stores the results of
// all layers. It is meant for enough images to fill a large GPU with two blocks per image. A block
// computes half of the first layer's rows and half of the other layers' filters. It sends its
// results to the shared memory of the other block. The first layer has the sums of
// LaunchFirstLayerForwardExact(). NaNs propagate from layer to layer.

struct ConvStackTraining {
  static constexpr int kLayers = ConvStackActing::kLayers;
  static constexpr int kMaxPasses = 3;
  struct Pass {
    const std::uint8_t* pixels = nullptr;  // [count, channel, height, width]
    const float* w[kLayers] = {};          // [kernel row, kernel column, channel, filter]
    const float* bias[kLayers] = {};       // [filter]
    float* out[kLayers] = {};              // [count, row, column, filter]
  };

  float scale = 1;  // of a pixel value
  int count = 1;
  int passes = 1;
  Pass list[kMaxPasses];
  LaunchOrder order = LaunchOrder::kSerial;  // as in FirstLayerForward
};

// For layers for which SupportsConvStack() holds. Operands must be aligned to 16 bytes.
void LaunchConvStackTraining(const ConvStackTraining& call, cudaStream_t stream);

}  // namespace uper::cuda
