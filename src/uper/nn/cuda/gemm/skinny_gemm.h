#pragma once

#include "uper/nn/cuda/gemm/gemm.h"

namespace uper::cuda {

// Dense layers of few observations, as in decisions. The weights are read once, straight into
// registers. Sums are in fp32: k is cut into `splits` parts, and each warp sums its share of each
// part. A row's result does not depend on the number of rows, but differs from that of
// LaunchGemms().

// Supported: one GEMM in fp32 with bias and ReLU, with strides instead of tables, and at most as
// many splits as a cluster has blocks. More than kSkinnyRows rows are computed one group after
// another.
inline constexpr int kSkinnyRows = 16;
bool SupportsSkinnyGemm(const GemmBatch& call);
// The best number of splits, or 0 if a cluster has too few blocks for it.
int SkinnyGemmSplits(int length);
void LaunchSkinnyGemm(const GemmBatch& call, cudaStream_t stream);

}  // namespace uper::cuda
