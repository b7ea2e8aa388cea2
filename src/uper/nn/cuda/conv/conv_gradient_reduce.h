#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper {

// Adds up the parts of the gradients of convolutions' weights and biases, of several layers at
// once, in the order of the parts.

inline constexpr int kMostParts = 32;  // all are on their way at once
// Blocks have so many weights, or the bias of so many filters.
inline constexpr int kPartWeights = 256;
inline constexpr int kPartFilters = 16;

struct PartSums {
  const float* parts = nullptr;
  int count = 1;      // of parts
  int floats = 0;     // of a part
  int weights = 0;    // a part's first floats: a multiple of kPartWeights
  int filters = 0;    // a multiple of kPartFilters
  int bias_rows = 0;  // behind the weights, [row][filter]: shares of the bias
  float* d_w = nullptr;
  float* d_bias = nullptr;
  double* squares = nullptr;  // [PartSumBlocks()]: sums over parts of squared results
  int first_block = 0;        // set by LaunchPartSums()
};
inline int PartSumBlocks(int weights, int filters) {
  return weights / kPartWeights + filters / kPartFilters;
}

inline constexpr int kMostPartSums = 4;
void LaunchPartSums(std::span<const PartSums> layers, cudaStream_t stream,
                    Follow follow = Follow::kAfter);

}  // namespace uper
