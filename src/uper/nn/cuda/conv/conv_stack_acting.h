#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/nn/network_spec.h"

namespace uper {

// The three convolutions of the Atari network in one kernel: a cluster of blocks has a picture,
// each of them its share of every layer, and what they find goes from one's shared memory to the
// others'. For few pictures, where starting kernels and fetching what the one before has written
// takes longer than to compute it. The first layer has the sums of LaunchExactPixelConvolution();
// what is not a number in one layer is not one in the next either.

struct PictureStack {
  static constexpr int kLayers = 3;

  const std::uint8_t* pixels = nullptr;  // [count, channel, height, width]
  PlanesToRead planes;                   // instead, [count, channel]
  float scale = 1;                       // of a pixel
  int count = 1;
  const float* w[kLayers] = {};     // [kernel row, kernel column, channel, filter]
  const float* bias[kLayers] = {};  // [filter]
  float* out = nullptr;             // [count, row, column, filter] of the last
};

// Whether LaunchPictureStack() can do these layers. Operands must be aligned to 16 bytes.
bool SuitsPictureStack(const InputSpec& input, std::span<const ConvolutionSpec> layers);

void LaunchPictureStack(const PictureStack& call, cudaStream_t stream);

}  // namespace uper
