#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/optimizer/optimizer_kernels.h"

namespace uper::cuda {

// Computes the gradient of a dense layer's weights and bias, and updates them as if nothing were to
// be clipped. With few samples the gradient is cheap; almost all the time goes into reading and
// writing the parameters.
struct DenseWeightUpdate {
  OptimizerRules rules;
  int batch = 1;
  int inputs = 1;
  int units = 1;
  const float* x = nullptr;         // [batch, inputs]
  const float* d_output = nullptr;  // [batch, units]
  // Starts at w [input, unit]; the bias [unit] follows.
  float* gradient = nullptr;
  ParameterUpdate parameters;
  const UpdateState* state = nullptr;
  double* squares = nullptr;  // [DenseWeightUpdateBlocks()]: partial sums of the squared gradient
};
int DenseWeightUpdateBlocks(int inputs, int units);
void LaunchDenseWeightUpdate(const DenseWeightUpdate& call, cudaStream_t stream);

}  // namespace uper::cuda
