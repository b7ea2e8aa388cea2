#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/nn/network_spec.h"

namespace uper::cuda {

// The three convolutions of the Atari network in one kernel, for decisions. A cluster of blocks
// computes one image. Each block computes a share of every layer and sends its results to the
// shared memory of the other blocks. This is faster for few images, where launching kernels and
// reading results from memory takes longer than computing. The first layer has the sums of
// LaunchFirstLayerForwardExact(). NaNs propagate from layer to layer.

struct ConvStackActing {
  static constexpr int kLayers = 3;

  const std::uint8_t* pixels = nullptr;  // [count, channel, height, width]
  FramePointerView frames;               // used if its entries are not null, [count, channel]
  float scale = 1;                       // of a pixel value
  int count = 1;
  const float* w[kLayers] = {};     // [kernel row, kernel column, channel, filter]
  const float* bias[kLayers] = {};  // [filter]
  float* out = nullptr;             // of the last layer: [count, row, column, filter]
};

// Whether LaunchConvStackActing() supports these layers. Operands must be aligned to 16 bytes.
bool SupportsConvStack(const InputSpec& input, std::span<const ConvolutionSpec> layers);

void LaunchConvStackActing(const ConvStackActing& call, cudaStream_t stream);

}  // namespace uper::cuda
