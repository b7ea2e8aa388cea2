#pragma once

#include "uper/nn/cuda/gemm/gemm.h"

namespace uper {

// How a call is cut into blocks, from a rough model of a large GPU. The model's numbers are
// constants, so that the order of additions depends on shapes alone.

// Chooses tile, splits and cluster.
void Plan(ProductCall& call);
// Tile and cluster for the splits that the call has: the sums stay the same bits.
void PlanBlocks(ProductCall& call);

}  // namespace uper
