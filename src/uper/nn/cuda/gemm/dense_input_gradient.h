#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// The gradient of a dense layer's inputs, for few samples:
//
//   d_x[b, i] = sum over units u of d_out[b, u] * w[i, u], where mask[b, i] > 0
//
// A block computes some inputs and loads all their weights before the previous kernel has ended,
// because memory is busy and slow at that time. Sums are in double precision (see double_mma.cuh);
// the sums of a block's warps are added as floats.

struct DenseInputGradient {
  int batch = 1, inputs = 1, units = 64;
  const float* d_out = nullptr;  // [batch, unit]
  const float* w = nullptr;      // [input, unit]
  const float* mask = nullptr;   // [batch, input]
  // d_x[b, i] is stored at d_x[b * d_sample + d_columns(i)].
  float* d_x = nullptr;
  int d_sample = 0;
  Offsets d_columns{nullptr, 1};
  LaunchOrder order = LaunchOrder::kSerial;
};

// Whether LaunchDenseInputGradient() supports the layer. d_out and w must be aligned to 16 bytes.
bool SupportsDenseInputGradient(int batch, int units);

void LaunchDenseInputGradient(const DenseInputGradient& call, cudaStream_t stream);

}  // namespace uper::cuda
