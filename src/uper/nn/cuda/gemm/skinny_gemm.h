#pragma once

#include "uper/nn/cuda/gemm/gemm.h"

namespace uper {

// Dense layers of few observations, as when acting: the weights are read once, straight into
// registers. Sums are fp32: `splits` parts of the length, in each of them one sum a warp. A row's
// results do not depend on how many there are, but they are not those of LaunchProducts().

// One product in fp32 with bias and ReLU, operands at strides, and no more splits than a cluster
// has blocks. More than kFewRows rows are done in turn.
inline constexpr int kFewRows = 16;
bool SuitsFewRows(const ProductCall& call);
// The splits that suit it best, or 0 where a cluster has too few blocks for them.
int FewRowsSplits(int length);
void LaunchFewRows(const ProductCall& call, cudaStream_t stream);

}  // namespace uper
