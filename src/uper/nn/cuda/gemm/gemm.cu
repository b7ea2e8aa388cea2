#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/gemm/gemm_kernel.cuh"

namespace uper::cuda {
Fetch FetchOf(const GemmBatch& call) {
  if (call.bytes) return Fetch::kPixels;
  if (!call.vectors) return Fetch::kAny;
  bool tables = true;
  bool strides = true;
  for (int i = 0; i < call.count; ++i) {
    const Gemm& p = call.gemms[i];
    if (p.length == 0 || p.length % GemmChunk(call.a_contiguous) != 0) return Fetch::kVectors;
    tables = tables && p.a_taps.table != nullptr && p.b_taps.table != nullptr;
    strides = strides && p.a_taps.table == nullptr && p.b_taps.table == nullptr;
  }
  return tables ? Fetch::kTables : strides ? Fetch::kStrides : Fetch::kVectors;
}

bool SupportsTile(const GemmBatch& call, GemmTile tile) {
  if (tile == GemmTile::k32x32) return true;
  const Fetch fetch = FetchOf(call);
  return (fetch == Fetch::kTables || fetch == Fetch::kStrides) && HasTile(call.precision, tile);
}

dim3 GemmGrid(const GemmBatch& call, int tile_rows, int tile_columns) {
  int rows = 0;
  int columns = 0;
  for (int i = 0; i < call.count; ++i) {
    rows = std::max(rows, call.gemms[i].rows);
    columns = std::max(columns, call.gemms[i].columns);
  }
  return dim3(CeilDiv(rows, tile_rows), CeilDiv(columns, tile_columns) * call.cluster, call.count);
}

int GemmBlocks(const GemmBatch& call) {
  const dim3 grid = GemmGrid(call, TileRows(call.tile), TileColumns(call.tile));
  return static_cast<int>(grid.x * grid.y * grid.z);
}

void LaunchGemms(const GemmBatch& call, cudaStream_t stream) {
  UPER_CHECK(call.count >= 1 && call.count <= kMaxGemms, "1 to kMaxGemms GEMMs per call");
  UPER_CHECK(call.cluster >= 1 && call.cluster <= kMaxCluster && call.splits % call.cluster == 0,
             "the blocks of a cluster must have equally many splits");
  UPER_CHECK(SupportsTile(call, call.tile), "the tile does not work for this call");
  UPER_CHECK(!call.with_bias_gradient || call.a_contiguous == Contiguous::kOutput,
             "with_bias_gradient needs a_contiguous kOutput");
  UPER_CHECK(!call.bytes || (call.a_contiguous == Contiguous::kReduction &&
                             call.b_contiguous == Contiguous::kOutput && call.vectors),
             "`bytes` needs vectors, and the operands of a forward pass");
  UPER_CHECK(
      call.a_contiguous == Contiguous::kReduction || call.b_contiguous == Contiguous::kOutput,
      "no layer needs A contiguous in m and B in k");
  switch (call.precision) {
    case Precision::kFp32:
      return LaunchDoubleGemms(call, stream);
    case Precision::kTf32:
      return LaunchTf32Gemms(call, stream);
    case Precision::kTf32x3:
      return LaunchTf32x3Gemms(call, stream);
  }
}

}  // namespace uper::cuda
