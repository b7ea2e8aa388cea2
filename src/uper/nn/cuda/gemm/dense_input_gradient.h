#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper {

// The gradient by the inputs of a dense layer, for few samples:
//
//   d_x[b, i] = sum over units u of d_out[b, u] * w[i, u], where mask[b, i] > 0
//
// A block has some inputs with all their weights, which it fetches before the kernel before it has
// ended: memory is busy then, and slow to answer. Sums are in double precision, see double_mma.cuh;
// those of a block's warps are added as floats.

struct DenseInputs {
  int batch = 1, inputs = 1, units = 64;
  const float* d_out = nullptr;  // [batch, unit]
  const float* w = nullptr;      // [input, unit]
  const float* mask = nullptr;   // [batch, input]
  // d_x[b, i] at d_x[b * d_sample + d_columns(i)].
  float* d_x = nullptr;
  int d_sample = 0;
  Offsets d_columns{nullptr, 1};
  Follow follow = Follow::kAfter;
};

// Whether LaunchDenseInputs() can do the layer. d_out and w must be aligned to 16 bytes.
bool SuitsDenseInputs(int batch, int units);

void LaunchDenseInputs(const DenseInputs& call, cudaStream_t stream);

}  // namespace uper
