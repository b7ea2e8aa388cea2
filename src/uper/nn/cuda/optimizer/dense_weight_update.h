#pragma once

#include <cuda_runtime_api.h>

#include "uper/nn/cuda/optimizer/optimizer_kernels.h"

namespace uper {

// The gradient of a dense layer's weights and bias, and at once the step on them as if nothing were
// to be clipped: with few samples the gradient is cheap, and going through the parameters is all
// the work.
struct DenseStep {
  OptimizerRules rules;
  int batch = 1;
  int inputs = 1;
  int units = 1;
  const float* x = nullptr;         // [batch, inputs]
  const float* d_output = nullptr;  // [batch, units]
  // From here on w [input, unit] and behind it the bias [unit].
  float* gradient = nullptr;
  ParameterStep parameters;
  const StepState* state = nullptr;
  double* squares = nullptr;  // [DenseStepBlocks()]: sums over parts of the squared gradient
};
int DenseStepBlocks(int inputs, int units);
void LaunchDenseStep(const DenseStep& call, cudaStream_t stream);

}  // namespace uper
