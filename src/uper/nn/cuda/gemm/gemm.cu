#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/gemm/gemm_kernel.cuh"

namespace uper {
namespace {

int Pieces(int total, int piece) { return (total + piece - 1) / piece; }

}  // namespace

Fetch FetchOf(const ProductCall& call) {
  if (call.bytes) return Fetch::kPixels;
  if (!call.vectors) return Fetch::kAny;
  bool tables = true;
  bool strides = true;
  for (int i = 0; i < call.count; ++i) {
    const Product& p = call.products[i];
    if (p.length == 0 || p.length % ProductChunk(call.a_along) != 0) return Fetch::kVectors;
    tables = tables && p.a_taps.table != nullptr && p.b_taps.table != nullptr;
    strides = strides && p.a_taps.table == nullptr && p.b_taps.table == nullptr;
  }
  return tables ? Fetch::kTables : strides ? Fetch::kStrides : Fetch::kVectors;
}

bool SuitsTile(const ProductCall& call, ProductTile tile) {
  if (tile == ProductTile::k32x32) return true;
  const Fetch fetch = FetchOf(call);
  return (fetch == Fetch::kTables || fetch == Fetch::kStrides) && HasTile(call.precision, tile);
}

dim3 ProductGrid(const ProductCall& call, int tile_rows, int tile_columns) {
  int rows = 0;
  int columns = 0;
  for (int i = 0; i < call.count; ++i) {
    rows = std::max(rows, call.products[i].rows);
    columns = std::max(columns, call.products[i].columns);
  }
  return dim3(Pieces(rows, tile_rows), Pieces(columns, tile_columns) * call.cluster, call.count);
}

int ProductBlocks(const ProductCall& call) {
  const dim3 grid = ProductGrid(call, TileRows(call.tile), TileColumns(call.tile));
  return static_cast<int>(grid.x * grid.y * grid.z);
}

void LaunchProducts(const ProductCall& call, cudaStream_t stream) {
  UPER_CHECK(call.count >= 1 && call.count <= kMaxProducts, "products to do");
  UPER_CHECK(call.cluster >= 1 && call.cluster <= kMaxCluster && call.splits % call.cluster == 0,
             "splits go to the blocks of a cluster in equal numbers");
  UPER_CHECK(SuitsTile(call, call.tile), "there is no such tile for this kind of product");
  UPER_CHECK(!call.sums_row || call.a_along == Along::kSide, "a bias belongs to weights");
  UPER_CHECK(!call.bytes ||
                 (call.a_along == Along::kLength && call.b_along == Along::kSide && call.vectors),
             "pixels are the input of a forward pass");
  UPER_CHECK(call.a_along == Along::kLength || call.b_along == Along::kSide,
             "no layer needs this kind of product");
  switch (call.precision) {
    case Precision::kFp32:
      return LaunchDoubleProducts(call, stream);
    case Precision::kTf32:
      return LaunchTf32Products(call, stream);
    case Precision::kTf32x3:
      return LaunchTf32x3Products(call, stream);
  }
}

}  // namespace uper
