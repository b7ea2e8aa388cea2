#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// Adds up partial sums of the gradients of convolution weights and biases, in a fixed order. One
// launch handles several layers.

inline constexpr int kMaxParts = 32;  // all are loaded before the first is added
// Weights per block, and filters per block of biases.
inline constexpr int kPartWeights = 256;
inline constexpr int kPartFilters = 16;

struct GradientReduction {
  const float* parts = nullptr;
  int count = 1;      // number of parts
  int floats = 0;     // per part
  int weights = 0;    // first floats of a part: a multiple of kPartWeights
  int filters = 0;    // a multiple of kPartFilters
  int bias_rows = 0;  // after the weights, [row][filter]: partial sums of the bias
  float* d_w = nullptr;
  float* d_bias = nullptr;
  double* squares = nullptr;  // [GradientReductionBlocks()]: partial sums of the squared results
  int first_block = 0;        // set by LaunchGradientReductions()
};
inline int GradientReductionBlocks(int weights, int filters) {
  return weights / kPartWeights + filters / kPartFilters;
}

inline constexpr int kMaxGradientReductions = 4;
void LaunchGradientReductions(std::span<const GradientReduction> layers, cudaStream_t stream,
                              LaunchOrder order = LaunchOrder::kSerial);

}  // namespace uper::cuda
