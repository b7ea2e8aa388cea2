#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/precision.h"

namespace uper {

// Matrix products of the torso: convolutions and dense layers, forward and backward, are all
//
//   C[m, n] = sum over k of A[m, k] * B[k, n]
//
// with operands read in place (nothing is unrolled into columns): A[m, k] lies at
// a[a_rows(m) + a_taps(k)], and B[k, n] at b[b_taps(k) + b_columns(n)]. Sums are in double
// precision, or fp32 for operands of 11 bits, and those of a block's warps are added in fp32, all
// in an order that only the shapes and the precision decide.

// Which index of an operand lies along memory.
enum class Along { kLength, kSide };

// Offsets in floats: a table in the GPU's memory, or multiples of a stride.
struct Offsets {
  const int* table = nullptr;
  int stride = 0;
};

// One product. A batch of products of one launch shares everything in ProductCall.
struct Product {
  int rows = 0;     // m
  int columns = 0;  // n
  int length = 0;   // k
  const float* a = nullptr;
  const std::uint8_t* a_bytes = nullptr;  // in the place of `a`: see ProductCall::bytes
  float a_scale = 1;
  Offsets a_rows, a_taps;
  const float* b = nullptr;
  Offsets b_columns, b_taps;
  const float* bias = nullptr;  // [column]; ProductFinish::kBiasRelu
  // kMask: the result counts only where mask[mask_rows(m) + n] > 0, the layer's input.
  const float* mask = nullptr;
  Offsets mask_rows;
  // C[m, n] at c[c_rows(m) + c_columns(n)].
  float* c = nullptr;
  Offsets c_rows;
  Offsets c_columns{nullptr, 1};
};

enum class ProductFinish { kStore, kBiasRelu, kMask };

// Rows and columns of the tiles. All give the same sums, but for their order between different
// splits.
enum class ProductTile { k48x32, k32x32, k32x16, k64x32 };
inline constexpr int kTileCount = 4;

constexpr int TileRows(ProductTile tile) {
  switch (tile) {
    case ProductTile::k64x32:
      return 64;
    case ProductTile::k48x32:
      return 48;
    case ProductTile::k32x32:
    case ProductTile::k32x16:
      break;
  }
  return 32;
}

constexpr int TileColumns(ProductTile tile) { return tile == ProductTile::k32x16 ? 16 : 32; }

// Whether there are kernels with this tile: for sums in double larger ones need too many registers.
constexpr bool HasTile(Precision precision, ProductTile tile) {
  return precision != Precision::kFp32 || TileRows(tile) == 32;
}

// Steps of the length that are at work at a time: splits are multiples of it, and lengths that are
// run without looking for their end.
constexpr int ProductChunk(Along a_along) { return a_along == Along::kLength ? 64 : 32; }

inline constexpr int kMaxProducts = 16;
inline constexpr int kPortableCluster = 8;
inline constexpr int kMaxCluster = 16;

struct ProductCall {
  Product products[kMaxProducts];
  int count = 1;
  Along a_along = Along::kLength;
  Along b_along = Along::kSide;
  // Groups of four along memory are aligned and whole, for both operands.
  bool vectors = false;
  // A[m, k] = a_scale * a_bytes[...], offsets in bytes: pictures that are still pixels. a_along
  // kLength, b_along kSide and `vectors` only.
  bool bytes = false;
  ProductFinish finish = ProductFinish::kStore;
  // C gets one more row: the sum over k of B[k, n], the gradient of a bias. a_along kSide only.
  bool sums_row = false;
  ProductTile tile = ProductTile::k32x32;
  // The length is cut into so many parts, whose sums are added in order, and `cluster` blocks work
  // on them at the same time. Only `splits` decides the order of additions.
  int splits = 1;
  int cluster = 1;
  // If not null: [ProductBlocks()], the sums over the squared results of each block.
  double* squares = nullptr;
  Follow follow = Follow::kAfter;
  Precision precision = Precision::kFp32;
};

// Whether the tile can be had for the call: k32x32 is for all kinds of products.
bool SuitsTile(const ProductCall& call, ProductTile tile);

// Blocks of a call.
int ProductBlocks(const ProductCall& call);

// Enqueues the products on the stream.
void LaunchProducts(const ProductCall& call, cudaStream_t stream);

}  // namespace uper
