#include "uper/nn/cuda/gemm/gemm_plan.h"

#include <algorithm>
#include <limits>

namespace uper {
namespace {

// The model: groups of multiprocessors that hold two blocks each (sizes that explain which clusters
// an H200 was seen to take at once); cycles.
constexpr int kGroups[] = {18, 18, 18, 18, 18, 16, 16, 10};
constexpr int kResident = 2;
constexpr double kBlockCycles = 3000;   // start, first data and results of a block
constexpr double kSplitCycles = 800;    // to add up a split's warps
constexpr double kClusterCycles = 800;  // to add up the blocks of a cluster
constexpr double kChunkCycles = 200;    // beside the arithmetic of a chunk
constexpr double kAlone = 1.3;          // a block alone on a multiprocessor does not reach it

// Of a multiprocessor at full speed. Tensor cores are so fast that bringing operands to them counts
// as well.
struct Rates {
  double term;     // one product
  double operand;  // one float, into shared memory and from there
};

Rates RatesOf(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return {.term = 1.0 / 640, .operand = 1.0 / 12};
    case Precision::kTf32x3:
      return {.term = 3.0 / 640, .operand = 1.0 / 12};
    case Precision::kFp32:
      break;
  }
  return {.term = 1.0 / 128, .operand = 0};
}

int Pieces(int total, int piece) { return (total + piece - 1) / piece; }

int TilesOf(const ProductCall& call, ProductTile tile) {
  int tiles = 0;
  for (int i = 0; i < call.count; ++i) {
    const Product& p = call.products[i];
    tiles += Pieces(p.rows, TileRows(tile)) * Pieces(p.columns, TileColumns(tile));
  }
  return tiles;
}

int ChunksOf(const ProductCall& call) {
  int length = 1;
  for (int i = 0; i < call.count; ++i) length = std::max(length, call.products[i].length);
  return Pieces(length, ProductChunk(call.a_along));
}

// The blocks of a cluster lie on different multiprocessors of one group: how many clusters find
// room at a time if every multiprocessor takes one block.
int ClustersAtOnce(int cluster) {
  int clusters = 0;
  for (const int group : kGroups) clusters += group / cluster;
  return std::max(clusters, 1);
}

double CyclesOf(const ProductCall& call, ProductTile tile, int splits, int cluster) {
  const int per_multiprocessor = Pieces(TilesOf(call, tile), ClustersAtOnce(cluster));
  const int block_splits = splits / cluster;
  const Rates rates = RatesOf(call.precision);
  const double step = rates.term * TileRows(tile) * TileColumns(tile) +
                      rates.operand * (TileRows(tile) + TileColumns(tile));
  const double arithmetic =
      step * ProductChunk(call.a_along) * (per_multiprocessor > 1 ? per_multiprocessor : kAlone);
  const double chunks = Pieces(ChunksOf(call), splits) * block_splits;
  const double fixed =
      kBlockCycles + kSplitCycles * (block_splits - 1) + (cluster > 1 ? kClusterCycles : 0.0);
  return Pieces(per_multiprocessor, kResident) * fixed + chunks * (arithmetic + kChunkCycles);
}

}  // namespace

void PlanBlocks(ProductCall& call) {
  double best = std::numeric_limits<double>::infinity();
  const int splits = call.splits;
  const ProductCall given = call;
  for (int i = 0; i < kTileCount; ++i) {
    const auto tile = static_cast<ProductTile>(i);
    if (!SuitsTile(call, tile)) continue;
    for (int cluster = 1; cluster <= std::min(splits, kMaxCluster); ++cluster) {
      if (splits % cluster != 0) continue;
      const double cycles = CyclesOf(given, tile, splits, cluster);
      if (!(cycles < best)) continue;
      best = cycles;
      call.tile = tile;
      call.cluster = cluster;
    }
  }
}

void Plan(ProductCall& call) {
  double best = std::numeric_limits<double>::infinity();
  ProductCall chosen = call;
  const int most = std::min(ChunksOf(call), kMaxCluster);
  for (int splits = 1; splits <= most; ++splits) {
    ProductCall candidate = call;
    candidate.splits = splits;
    PlanBlocks(candidate);
    const double cycles = CyclesOf(call, candidate.tile, splits, candidate.cluster);
    if (!(cycles < best)) continue;
    best = cycles;
    chosen = candidate;
  }
  call = chosen;
}

}  // namespace uper
