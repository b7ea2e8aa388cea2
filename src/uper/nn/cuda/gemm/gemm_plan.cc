#include "uper/nn/cuda/gemm/gemm_plan.h"

#include <algorithm>
#include <limits>

#include "uper/base/arithmetic.h"

namespace uper::cuda {
namespace {

// The model, in cycles. kGroups: multiprocessors per group, for two blocks each. These sizes
// explain which clusters an H200 ran at the same time.
constexpr int kGroups[] = {18, 18, 18, 18, 18, 16, 16, 10};
constexpr int kResident = 2;
constexpr double kBlockCycles = 3000;   // start, first data and results of a block
constexpr double kSplitCycles = 800;    // adding the warps' sums of a split
constexpr double kClusterCycles = 800;  // adding the blocks' sums of a cluster
constexpr double kChunkCycles = 200;    // overhead of a chunk
constexpr double kAlone =
    1.3;  // arithmetic of a lone block on a multiprocessor takes this much longer

// Cycles on a multiprocessor at full speed. Tensor cores are so fast that loading operands counts,
// too.
struct Rates {
  double term;     // per multiplication
  double operand;  // per float that is moved into and out of shared memory
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

int TilesOf(const GemmBatch& call, GemmTile tile) {
  int tiles = 0;
  for (int i = 0; i < call.count; ++i) {
    const Gemm& p = call.gemms[i];
    tiles += CeilDiv(p.rows, TileRows(tile)) * CeilDiv(p.columns, TileColumns(tile));
  }
  return tiles;
}

int ChunksOf(const GemmBatch& call) {
  int length = 1;
  for (int i = 0; i < call.count; ++i) length = std::max(length, call.gemms[i].length);
  return CeilDiv(length, GemmChunk(call.a_contiguous));
}

// Blocks of a cluster run on different multiprocessors of one group. Returns how many clusters run
// at a time if each multiprocessor takes one block.
int ClustersAtOnce(int cluster) {
  int clusters = 0;
  for (const int group : kGroups) clusters += group / cluster;
  return std::max(clusters, 1);
}

double CyclesOf(const GemmBatch& call, GemmTile tile, int splits, int cluster) {
  const int per_multiprocessor = CeilDiv(TilesOf(call, tile), ClustersAtOnce(cluster));
  const int block_splits = splits / cluster;
  const Rates rates = RatesOf(call.precision);
  const double step = rates.term * TileRows(tile) * TileColumns(tile) +
                      rates.operand * (TileRows(tile) + TileColumns(tile));
  const double arithmetic =
      step * GemmChunk(call.a_contiguous) * (per_multiprocessor > 1 ? per_multiprocessor : kAlone);
  const double chunks = CeilDiv(ChunksOf(call), splits) * block_splits;
  const double fixed =
      kBlockCycles + kSplitCycles * (block_splits - 1) + (cluster > 1 ? kClusterCycles : 0.0);
  return CeilDiv(per_multiprocessor, kResident) * fixed + chunks * (arithmetic + kChunkCycles);
}

}  // namespace

void PlanBlocks(GemmBatch& call) {
  double best = std::numeric_limits<double>::infinity();
  const int splits = call.splits;
  const GemmBatch given = call;
  for (int i = 0; i < kTileCount; ++i) {
    const auto tile = static_cast<GemmTile>(i);
    if (!SupportsTile(call, tile)) continue;
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

void Plan(GemmBatch& call) {
  double best = std::numeric_limits<double>::infinity();
  GemmBatch chosen = call;
  const int most = std::min(ChunksOf(call), kMaxCluster);
  for (int splits = 1; splits <= most; ++splits) {
    GemmBatch candidate = call;
    candidate.splits = splits;
    PlanBlocks(candidate);
    const double cycles = CyclesOf(call, candidate.tile, splits, candidate.cluster);
    if (!(cycles < best)) continue;
    best = cycles;
    chosen = candidate;
  }
  call = chosen;
}

}  // namespace uper::cuda
