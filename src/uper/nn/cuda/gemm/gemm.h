#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/precision.h"

namespace uper::cuda {

// Matrix products (GEMMs) of the torso. Convolutions and dense layers, forward and backward, are
// all
//
//   C[m, n] = sum over k of A[m, k] * B[k, n]
//
// Operands are read in place (there is no im2col buffer): A[m, k] lies at a[a_rows(m) + a_taps(k)],
// and B[k, n] at b[b_taps(k) + b_columns(n)]. Sums are in double precision, or in fp32 for operands
// of 11 bits. The sums of a block's warps are added in fp32. The order of additions depends only on
// the shapes and the precision.

// Which index of an operand is contiguous in memory: k, or the index of the output (m or n).
enum class Contiguous { kReduction, kOutput };

// Offsets in floats: a table in the GPU's memory, or multiples of a stride.
struct Offsets {
  const int* table = nullptr;
  int stride = 0;
};

// One GEMM. The GEMMs of one launch share everything in GemmBatch.
struct Gemm {
  int rows = 0;     // m
  int columns = 0;  // n
  int length = 0;   // k
  const float* a = nullptr;
  const std::uint8_t* a_bytes = nullptr;  // instead of `a`: see GemmBatch::bytes
  float a_scale = 1;
  Offsets a_rows, a_taps;
  const float* b = nullptr;
  Offsets b_columns, b_taps;
  const float* bias = nullptr;  // [column]; GemmEpilogue::kBiasRelu
  // kMask: the result is 0 unless mask[mask_rows(m) + n] > 0. The mask is the layer's input.
  const float* mask = nullptr;
  Offsets mask_rows;
  // C[m, n] is stored at c[c_rows(m) + c_columns(n)].
  float* c = nullptr;
  Offsets c_rows;
  Offsets c_columns{nullptr, 1};
};

enum class GemmEpilogue { kStore, kBiasRelu, kMask };

// Rows and columns of the tiles. All tiles give the same sums as long as `splits` is the same.
enum class GemmTile { k48x32, k32x32, k32x16, k64x32 };
inline constexpr int kTileCount = 4;

constexpr int TileRows(GemmTile tile) {
  switch (tile) {
    case GemmTile::k64x32:
      return 64;
    case GemmTile::k48x32:
      return 48;
    case GemmTile::k32x32:
    case GemmTile::k32x16:
      break;
  }
  return 32;
}

constexpr int TileColumns(GemmTile tile) { return tile == GemmTile::k32x16 ? 16 : 32; }

// Whether kernels with this tile exist: for double sums, larger tiles would need too many
// registers.
constexpr bool HasTile(Precision precision, GemmTile tile) {
  return precision != Precision::kFp32 || TileRows(tile) == 32;
}

// Values of k that a block loads at a time. Splits are multiples of it. Loops without a bounds
// check need a k that is a multiple of it.
constexpr int GemmChunk(Contiguous a_contiguous) {
  return a_contiguous == Contiguous::kReduction ? 64 : 32;
}

inline constexpr int kMaxGemms = 16;
inline constexpr int kPortableCluster = 8;
inline constexpr int kMaxCluster = 16;

struct GemmBatch {
  Gemm gemms[kMaxGemms];
  int count = 1;
  Contiguous a_contiguous = Contiguous::kReduction;
  Contiguous b_contiguous = Contiguous::kOutput;
  // For both operands: rows of four contiguous floats are complete and aligned.
  bool vectors = false;
  // A[m, k] = a_scale * a_bytes[...], with offsets in bytes, for images that are still bytes. Only
  // with a_contiguous kReduction, b_contiguous kOutput and `vectors`.
  bool bytes = false;
  GemmEpilogue epilogue = GemmEpilogue::kStore;
  // C gets one more row, the gradient of a bias: the sum over k of B[k, n]. Only with a_contiguous
  // kOutput.
  bool with_bias_gradient = false;
  GemmTile tile = GemmTile::k32x32;
  // k is cut into `splits` parts, whose sums are added in order. `cluster` blocks compute the parts
  // at the same time. Only `splits` affects the order of additions.
  int splits = 1;
  int cluster = 1;
  // If not null: [GemmBlocks()], the sum of the squared results of each block.
  double* squares = nullptr;
  LaunchOrder order = LaunchOrder::kSerial;
  Precision precision = Precision::kFp32;
};

// Whether the tile works for the call; k32x32 works for all calls.
bool SupportsTile(const GemmBatch& call, GemmTile tile);

// Number of blocks of a call.
int GemmBlocks(const GemmBatch& call);

// Enqueues the GEMMs on the stream.
void LaunchGemms(const GemmBatch& call, cudaStream_t stream);

}  // namespace uper::cuda
