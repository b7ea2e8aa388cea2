#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "uper/nn/cuda/optimizer/dense_weight_update.h"
#include "uper/nn/cuda/optimizer/optimizer_step.cuh"
#include "uper/nn/cuda/ptx/bulk_copy.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

// A block handles 32 rows of 128 parameters, a thread 8 x 4 of them; a warp's lanes go along a row.
constexpr int kThreads = 128;
constexpr int kTileM = 8;
constexpr int kTileN = 4;
constexpr int kRows = kThreads / kWarpSize * kTileM;
constexpr int kColumns = kWarpSize * kTileN;
constexpr int kSamples = 32;  // in shared memory at a time

struct Memory {
  float x[kSamples][kRows];
  float d[kSamples][kColumns];
  float p[kRows][kColumns], m[kRows][kColumns], v[kRows][kColumns];
};

// The block's parameters, and the thread's.
struct Part {
  int first_row, first_column;
  int rows, columns;
  int inputs;                 // rows of weights, without the bias
  int own_row, own_column;    // in the block
  int own_rows, own_columns;  // number of existing rows and columns
  std::ptrdiff_t own_at;      // the first one, in the layer

  __device__ explicit Part(const DenseWeightUpdate& call)
      : first_row(static_cast<int>(blockIdx.x) * kRows),
        first_column(static_cast<int>(blockIdx.y) * kColumns),
        rows(min(kRows, call.inputs + 1 - first_row)),
        columns(min(kColumns, call.units - first_column)),
        inputs(min(kRows, call.inputs - first_row)),
        own_row(static_cast<int>(threadIdx.x) / kWarpSize * kTileM),
        own_column(static_cast<int>(threadIdx.x) % kWarpSize * kTileN),
        own_rows(own_column < columns ? min(kTileM, rows - own_row) : 0),
        own_columns(min(kTileN, columns - own_column)),
        own_at(static_cast<std::ptrdiff_t>(first_row + own_row) * call.units + first_column +
               own_column) {}
};

// Starts to copy `count` rows of `columns` floats that are `step` apart.
template <bool kVectors, int kPitch>
__device__ void StartRows(const float* from, std::ptrdiff_t step, int count, int columns,
                          float (*to)[kPitch]) {
  constexpr int kGroup = kVectors ? 4 : 1;
  constexpr int kGroups = kPitch / kGroup;  // per row
  const int column = static_cast<int>(threadIdx.x) % kGroups * kGroup;
  if (column >= columns) return;
#pragma unroll 8
  for (int row = static_cast<int>(threadIdx.x) / kGroups; row < count; row += kThreads / kGroups) {
    __pipeline_memcpy_async(&to[row][column], from + row * step + column, kGroup * sizeof(float));
  }
}

template <bool kVectors>
__device__ void StartSamples(const DenseWeightUpdate& call, const Part& part, int first,
                             Memory& memory) {
  const int count = min(kSamples, call.batch - first);
  StartRows<kVectors>(call.x + static_cast<std::ptrdiff_t>(first) * call.inputs + part.first_row,
                      call.inputs, count, part.inputs, memory.x);
  StartRows<kVectors>(
      call.d_output + static_cast<std::ptrdiff_t>(first) * call.units + part.first_column,
      call.units, count, part.columns, memory.d);
}

// Four moments, or one. They are not read again soon, so they leave the cache to others.
template <bool kVectors>
__device__ void StartMoments(float* to, const float* from) {
  if constexpr (kVectors) {
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)),
        "l"(__cvta_generic_to_global(from)), "l"(CachePolicy(CacheHint::kEvictFirst))
        : "memory");
  } else {
    __pipeline_memcpy_async(to, from, sizeof(float));
  }
}

// Each thread loads its own parameters and moments.
template <bool kVectors>
__device__ void StartParameters(const DenseWeightUpdate& call, const Part& part, Memory& memory) {
  constexpr int kGroup = kVectors ? 4 : 1;
  const float* p = call.parameters.from.p + part.own_at;
  const float* m = call.parameters.from.m + part.own_at;
  const float* v = call.parameters.from.v + part.own_at;
#pragma unroll
  for (int i = 0; i < kTileM; ++i) {
    if (i >= part.own_rows) break;
#pragma unroll
    for (int j = 0; j < kTileN; j += kGroup) {
      if (!kVectors && j >= part.own_columns) break;
      const int row = part.own_row + i;
      const int column = part.own_column + j;
      __pipeline_memcpy_async(&memory.p[row][column], p + j, kGroup * sizeof(float));
      StartMoments<kVectors>(&memory.m[row][column], m + j);
      StartMoments<kVectors>(&memory.v[row][column], v + j);
    }
    p += call.units;
    m += call.units;
    v += call.units;
  }
}

__device__ inline void LoadFour(const float* from, float (&to)[kTileN]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}

// g += the outer products of the samples, in ascending order.
__device__ inline void AddSamples(const Memory& memory, int count, const Part& part,
                                  float (&g)[kTileM][kTileN]) {
#pragma unroll 8
  for (int b = 0; b < count; ++b) {
    float x[2][4], d[kTileN];
    LoadFour(&memory.x[b][part.own_row], x[0]);
    LoadFour(&memory.x[b][part.own_row + 4], x[1]);
    LoadFour(&memory.d[b][part.own_column], d);
#pragma unroll
    for (int i = 0; i < kTileM; ++i) {
#pragma unroll
      for (int j = 0; j < kTileN; ++j) g[i][j] = fmaf(x[i / 4][i % 4], d[j], g[i][j]);
    }
  }
}

// Stores those of four neighboring values that are before `count`. They are not read again soon, so
// they leave the cache to others.
template <bool kVectors, bool kReadSoon>
__device__ void Store(const float (&from)[kTileN], int count, float* to) {
  if constexpr (kVectors) {
    const float4 four = make_float4(from[0], from[1], from[2], from[3]);
    if constexpr (kReadSoon) {
      *reinterpret_cast<float4*>(to) = four;
    } else {
      __stcs(reinterpret_cast<float4*>(to), four);
    }
  } else {
#pragma unroll
    for (int j = 0; j < kTileN; ++j) {
      if (j < count) to[j] = from[j];
    }
  }
}

// Updates the thread's parameters and returns the sum of their squared gradient.
template <bool kAdam, bool kVectors>
__device__ double UpdateAll(const DenseWeightUpdate& call, const UpdateRules& rules,
                            const Part& part, const Memory& memory,
                            const float (&g)[kTileM][kTileN]) {
  const UpdateScales scales = UpdateScalesOf(OptimizerPass::kSpeculative, *call.state);
  float* to_g = call.gradient + part.own_at;
  float* to_p = call.parameters.to.p + part.own_at;
  float* to_m = call.parameters.to.m + part.own_at;
  float* to_v = call.parameters.to.v + part.own_at;
  double squares = 0;
#pragma unroll
  for (int i = 0; i < kTileM; ++i) {
    if (i >= part.own_rows) break;
    float p[kTileN], m[kTileN], v[kTileN];
    LoadFour(&memory.p[part.own_row + i][part.own_column], p);
    LoadFour(&memory.m[part.own_row + i][part.own_column], m);
    LoadFour(&memory.v[part.own_row + i][part.own_column], v);
#pragma unroll
    for (int j = 0; j < kTileN; ++j) {
      if (kVectors || j < part.own_columns) {
        squares += static_cast<double>(g[i][j]) * static_cast<double>(g[i][j]);
      }
      UpdateParameter<kAdam>(rules, scales, g[i][j], p[j], m[j], v[j]);
    }
    Store<kVectors, false>(g[i], part.own_columns, to_g);
    Store<kVectors, true>(p, part.own_columns, to_p);
    Store<kVectors, false>(m, part.own_columns, to_m);
    Store<kVectors, false>(v, part.own_columns, to_v);
    to_g += call.units;
    to_p += call.units;
    to_m += call.units;
    to_v += call.units;
  }
  return squares;
}

// Grid: groups of rows, groups of columns. The parameters are loaded while the gradient is
// computed, without registers, so that other kernels can run at the same time.
template <bool kAdam, bool kVectors>
__global__ void __launch_bounds__(kThreads, 6)
    DenseWeightUpdateKernel(const __grid_constant__ DenseWeightUpdate call,
                            const __grid_constant__ UpdateRules rules) {
  extern __shared__ __align__(16) unsigned char bytes[];
  __shared__ double scratch[kWarpSize];
  Memory& memory = *reinterpret_cast<Memory*>(bytes);
  const Part part(call);
  StartSamples<kVectors>(call, part, 0, memory);
  __pipeline_commit();
  StartParameters<kVectors>(call, part, memory);
  __pipeline_commit();
  if (part.rows > part.inputs && threadIdx.x < kSamples) {
    memory.x[threadIdx.x][part.rows - 1] = 1;  // for the bias, which follows the inputs
  }
  float g[kTileM][kTileN] = {};
#pragma unroll 1
  for (int first = 0; first < call.batch; first += kSamples) {
    if (first == 0) {
      __pipeline_wait_prior(1);
    } else {
      __syncthreads();  // the previous samples have been read
      StartSamples<kVectors>(call, part, first, memory);
      __pipeline_commit();
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    AddSamples(memory, min(kSamples, call.batch - first), part, g);
  }
  __pipeline_wait_prior(0);
  const double squares =
      BlockSum(UpdateAll<kAdam, kVectors>(call, rules, part, memory, g), scratch);
  if (threadIdx.x == 0) call.squares[blockIdx.y * gridDim.x + blockIdx.x] = squares;
}

dim3 GridOf(int inputs, int units) {
  return dim3((inputs + 1 + kRows - 1) / kRows, (units + kColumns - 1) / kColumns);
}

}  // namespace

int DenseWeightUpdateBlocks(int inputs, int units) {
  const dim3 grid = GridOf(inputs, units);
  return static_cast<int>(grid.x * grid.y);
}

void LaunchDenseWeightUpdate(const DenseWeightUpdate& call, cudaStream_t stream) {
  const auto address = [](const float* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  };
  const auto places = [&](const ParameterBlock& block) {
    return address(block.p) | address(block.m) | address(block.v);
  };
  const bool vectors = call.units % kTileN == 0 && call.inputs % kTileN == 0 &&
                       (address(call.x) | address(call.d_output) | address(call.gradient) |
                        places(call.parameters.from) | places(call.parameters.to)) %
                               16 ==
                           0;
  const auto kernel =
      call.rules.adam
          ? (vectors ? DenseWeightUpdateKernel<true, true> : DenseWeightUpdateKernel<true, false>)
          : (vectors ? DenseWeightUpdateKernel<false, true>
                     : DenseWeightUpdateKernel<false, false>);
  LaunchKernel("update of a dense layer", kernel,
               {.grid = GridOf(call.inputs, call.units),
                .block = kThreads,
                .shared_bytes = sizeof(Memory),
                .stream = stream},
               call, UpdateRules(call.rules));
}

}  // namespace uper::cuda
