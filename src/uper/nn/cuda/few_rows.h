#pragma once

#include "uper/nn/cuda/product.h"

namespace uper {

// Dense layers of few observations, as when acting: the weights are read once, straight into
// registers. The sums are those of LaunchProducts() to the bit: `splits` parts of the length, in
// each of them one sum a warp.

// One product in fp32 with at most kFewRows rows, bias and ReLU, operands at strides, and no more
// splits than a cluster has blocks.
inline constexpr int kFewRows = 16;
bool SuitsFewRows(const ProductCall& call);
// The splits that suit it best, or 0 where a cluster has too few blocks for them.
int FewRowsSplits(int length);
void LaunchFewRows(const ProductCall& call, cudaStream_t stream);

}  // namespace uper
