#pragma once

#include "uper/nn/cuda/gemm/gemm.h"

namespace uper::cuda {

// Decides how a call is cut into blocks, with a rough model of a large GPU. The model's parameters
// are constants, so that the order of additions depends only on the shapes.

// Chooses tile, splits and cluster.
void Plan(GemmBatch& call);
// Chooses tile and cluster for the call's splits; the sums keep the same bits.
void PlanBlocks(GemmBatch& call);

}  // namespace uper::cuda
