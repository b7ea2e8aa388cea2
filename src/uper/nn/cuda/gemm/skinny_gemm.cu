#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstddef>

#include "uper/base/check.h"
#include "uper/nn/cuda/gemm/gemm_operands.cuh"
#include "uper/nn/cuda/gemm/skinny_gemm.h"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kChunk = GemmChunk(Contiguous::kReduction);
constexpr int kSteps = kChunk / kGemmWarps;  // per warp and chunk
// Chunks whose weights are loaded at a time: a whole split of the Atari network, so that no weights
// are missing when the inputs arrive.
constexpr int kFetchedChunks = 7;
constexpr int kColumns = kWarp;  // per block

// Per split.
int MostChunks(int length, int splits) { return (length / kChunk + splits - 1) / splits; }

// Grid: groups of columns, splits. A lane computes a column; the warps split k as in GemmKernel.
template <int kRows>
__global__ void __launch_bounds__(kGemmThreads, 2)
    SkinnyGemmKernel(const __grid_constant__ Gemm p, int splits, int most_chunks) {
  extern __shared__ __align__(16) float inputs[];  // [row][step] of the split
  __shared__ float warp_sums[kGemmWarps][kRows][kColumns];
  __shared__ float tile[kRows][kColumns];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  const int split = static_cast<int>(blockIdx.y);
  const int chunks = p.length / kChunk;
  const int begin = chunks * split / splits;
  const int end = chunks * (split + 1) / splits;
  const float* weights = p.b + (begin * kChunk + warp * kSteps) * p.b_taps.stride + column;
  const auto fetch = [&](int first, float(&w)[kFetchedChunks][kSteps]) {
#pragma unroll
    for (int chunk = 0; chunk < kFetchedChunks; ++chunk) {
      if (begin + first + chunk >= end) break;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        w[chunk][k] = __ldg(weights + ((first + chunk) * kChunk + k) * p.b_taps.stride);
      }
    }
  };
  float w[kFetchedChunks][kSteps];
  fetch(0, w);  // the weights were written before the previous kernel started
  AwaitPredecessor();
  const int part = most_chunks * kChunk;  // pitch of a row in shared memory
  for (int i = 4 * static_cast<int>(threadIdx.x); i < kRows * part; i += 4 * kGemmThreads) {
    const int row = i / part;
    const int step = begin * kChunk + i % part;
    if (row >= p.rows || step >= end * kChunk) continue;
    __pipeline_memcpy_async(inputs + i, p.a + row * p.a_rows.stride + step, sizeof(float4));
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  float sums[kRows] = {};
  for (int first = 0; begin + first < end; first += kFetchedChunks) {
    if (first > 0) fetch(first, w);
#pragma unroll
    for (int chunk = 0; chunk < kFetchedChunks; ++chunk) {
      if (begin + first + chunk >= end) break;
      const float* at = inputs + (first + chunk) * kChunk + warp * kSteps;
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
#pragma unroll
        for (int k = 0; k < kSteps; k += 4) {
          const float4 x = *reinterpret_cast<const float4*>(at + row * part + k);
          sums[row] = fmaf(x.x, w[chunk][k], sums[row]);
          sums[row] = fmaf(x.y, w[chunk][k + 1], sums[row]);
          sums[row] = fmaf(x.z, w[chunk][k + 2], sums[row]);
          sums[row] = fmaf(x.w, w[chunk][k + 3], sums[row]);
        }
      }
    }
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row) warp_sums[warp][row][lane] = sums[row];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kGemmThreads) {
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kGemmWarps; ++g) sum += warp_sums[g][i / kColumns][i % kColumns];
    tile[i / kColumns][i % kColumns] = sum;
  }
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  for (int i = kGemmThreads * split + static_cast<int>(threadIdx.x); i < p.rows * kColumns;
       i += kGemmThreads * splits) {
    float parts[kPortableCluster] = {};  // all are loaded before the first is used
#pragma unroll
    for (int other = 0; other < kPortableCluster; ++other) {
      if (other >= splits) continue;
      parts[other] = *cluster.map_shared_rank(&tile[i / kColumns][i % kColumns], other);
    }
    float sum = 0;
#pragma unroll
    for (int other = 0; other < kPortableCluster; ++other) {
      if (other < splits) sum += parts[other];
    }
    const int n = static_cast<int>(blockIdx.x) * kColumns + i % kColumns;
    p.c[i / kColumns * p.c_rows.stride + n] = fmaxf(0.0F, sum + __ldg(p.bias + n));
  }
  cluster.sync();  // the tiles have been read
}

template <int kRows>
void Launch(const GemmBatch& call, cudaStream_t stream) {
  const Gemm& p = call.gemms[0];
  const int most_chunks = MostChunks(p.length, call.splits);
  LaunchKernel("dense layer with few rows", SkinnyGemmKernel<kRows>,
               {.grid = dim3(p.columns / kColumns, call.splits),
                .block = kGemmThreads,
                .shared_bytes = sizeof(float) * kRows * most_chunks * kChunk,
                .stream = stream,
                .order = call.order,
                .cluster = dim3(1, call.splits, 1)},
               p, call.splits, most_chunks);
}

}  // namespace

int SkinnyGemmSplits(int length) {
  const int splits = (length + kFetchedChunks * kChunk - 1) / (kFetchedChunks * kChunk);
  return splits <= kPortableCluster ? splits : 0;
}

bool SupportsSkinnyGemm(const GemmBatch& call) {
  const Gemm& p = call.gemms[0];
  const auto at_strides = [](const Offsets& offsets) { return offsets.table == nullptr; };
  return call.precision == Precision::kFp32 && call.count == 1 && call.vectors && !call.bytes &&
         call.a_contiguous == Contiguous::kReduction && call.b_contiguous == Contiguous::kOutput &&
         call.epilogue == GemmEpilogue::kBiasRelu && call.squares == nullptr &&
         call.splits <= kPortableCluster && p.length % kChunk == 0 && p.columns % kColumns == 0 &&
         at_strides(p.a_rows) && at_strides(p.a_taps) && at_strides(p.b_columns) &&
         at_strides(p.b_taps) && at_strides(p.c_rows) && at_strides(p.c_columns) &&
         p.a_taps.stride == 1 && p.b_columns.stride == 1 && p.c_columns.stride == 1 &&
         p.a_rows.stride % 4 == 0;
}

void LaunchSkinnyGemm(const GemmBatch& call, cudaStream_t stream) {
  UPER_CHECK(SupportsSkinnyGemm(call), "LaunchSkinnyGemm() does not support this call");
  GemmBatch group = call;
  Gemm& p = group.gemms[0];
  for (int left = call.gemms[0].rows; left > 0; left -= p.rows) {
    p.rows = std::min(left, kSkinnyRows);
    if (p.rows == 1) {
      Launch<1>(group, stream);
    } else if (p.rows <= 4) {
      Launch<4>(group, stream);
    } else {
      Launch<kSkinnyRows>(group, stream);
    }
    p.a += std::ptrdiff_t{1} * p.rows * p.a_rows.stride;
    p.c += std::ptrdiff_t{1} * p.rows * p.c_rows.stride;
  }
}

}  // namespace uper::cuda
