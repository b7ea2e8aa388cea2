#include <cstdint>

#include "uper/nn/cuda/dense_step.h"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_step.cuh"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

// A block has 32 rows of 128 parameters, a thread 4 x 4 of them: a warp's lanes go along a row.
constexpr int kThreads = 256;
constexpr int kTile = 4;
constexpr int kRows = kThreads / kWarpSize * kTile;
constexpr int kColumns = kWarpSize * kTile;
constexpr int kSamples = 32;  // in shared memory at a time

// Four neighbours of a row; of those beyond `left`, nothing is read or written.
template <bool kVectors>
__device__ void Load(const float* from, int left, float (&to)[kTile]) {
  if constexpr (kVectors) {
    const float4 four = left > 0 ? *reinterpret_cast<const float4*>(from) : make_float4(0, 0, 0, 0);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
  } else {
#pragma unroll
    for (int i = 0; i < kTile; ++i) to[i] = i < left ? from[i] : 0.0F;
  }
}
template <bool kVectors>
__device__ void Store(const float (&from)[kTile], int left, float* to) {
  if constexpr (kVectors) {
    if (left > 0) *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  } else {
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      if (i < left) to[i] = from[i];
    }
  }
}

struct Shared {
  float x[kSamples][kRows];
  float d[kSamples][kColumns];
};

// x of the bias is 1.
__device__ void LoadSamples(const DenseStep& call, int first_sample, int first_row,
                            int first_column, Shared& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < kSamples * kRows; i += kThreads) {
    const int b = first_sample + i / kRows;
    const int row = first_row + i % kRows;
    float value = 0;
    if (b < call.batch && row < call.inputs) {
      value = __ldg(call.x + static_cast<std::ptrdiff_t>(b) * call.inputs + row);
    } else if (b < call.batch && row == call.inputs) {
      value = 1;
    }
    shared.x[i / kRows][i % kRows] = value;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kSamples * kColumns; i += kThreads) {
    const int b = first_sample + i / kColumns;
    const int column = first_column + i % kColumns;
    shared.d[i / kColumns][i % kColumns] =
        b < call.batch && column < call.units
            ? __ldg(call.d_output + static_cast<std::ptrdiff_t>(b) * call.units + column)
            : 0.0F;
  }
}

// Grid: groups of rows, groups of columns.
template <bool kAdam, bool kVectors>
__global__ void __launch_bounds__(kThreads, 2)
    DenseStepKernel(const __grid_constant__ DenseStep call,
                    const __grid_constant__ StepRules rules) {
  __shared__ __align__(16) Shared shared;
  __shared__ double scratch[kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int first_column = static_cast<int>(blockIdx.y) * kColumns;
  const int own_row = static_cast<int>(threadIdx.x) / kWarpSize * kTile;
  const int column = first_column + lane * kTile;
  const auto at = [&](int i) {
    return static_cast<std::ptrdiff_t>(first_row + own_row + i) * call.units + column;
  };
  const auto left = [&](int i) {
    return first_row + own_row + i <= call.inputs ? call.units - column : 0;
  };
  // On their way while the gradient is being formed.
  float p[kTile][kTile], m[kTile][kTile], v[kTile][kTile];
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
    Load<kVectors>(call.parameters.from.p + at(i), left(i), p[i]);
    Load<kVectors>(call.parameters.from.m + at(i), left(i), m[i]);
    Load<kVectors>(call.parameters.from.v + at(i), left(i), v[i]);
  }
  float g[kTile][kTile] = {};
  for (int first = 0; first < call.batch; first += kSamples) {
    __syncthreads();
    LoadSamples(call, first, first_row, first_column, shared);
    __syncthreads();
#pragma unroll 8
    for (int b = 0; b < kSamples; ++b) {
      const float4 x = *reinterpret_cast<const float4*>(&shared.x[b][own_row]);
      const float4 d = *reinterpret_cast<const float4*>(&shared.d[b][lane * kTile]);
      const float xs[kTile] = {x.x, x.y, x.z, x.w};
      const float ds[kTile] = {d.x, d.y, d.z, d.w};
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
#pragma unroll
        for (int j = 0; j < kTile; ++j) g[i][j] = fmaf(xs[i], ds[j], g[i][j]);
      }
    }
  }
  const StepScales scales = StepScalesOf(StepKind::kAhead, *call.state);
  double squares = 0;
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
#pragma unroll
    for (int j = 0; j < kTile; ++j) {
      if (j < left(i)) squares += static_cast<double>(g[i][j]) * static_cast<double>(g[i][j]);
      Step<kAdam>(rules, scales, g[i][j], p[i][j], m[i][j], v[i][j]);
    }
    Store<kVectors>(g[i], left(i), call.gradient + at(i));
    Store<kVectors>(p[i], left(i), call.parameters.to.p + at(i));
    Store<kVectors>(m[i], left(i), call.parameters.to.m + at(i));
    Store<kVectors>(v[i], left(i), call.parameters.to.v + at(i));
  }
  squares = BlockSum(squares, scratch);
  if (threadIdx.x == 0) call.squares[blockIdx.y * gridDim.x + blockIdx.x] = squares;
}

dim3 GridOf(int inputs, int units) {
  return dim3((inputs + 1 + kRows - 1) / kRows, (units + kColumns - 1) / kColumns);
}

}  // namespace

int DenseStepBlocks(int inputs, int units) {
  const dim3 grid = GridOf(inputs, units);
  return static_cast<int>(grid.x * grid.y);
}

void LaunchDenseStep(const DenseStep& call, cudaStream_t stream) {
  const auto address = [](const float* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  };
  const auto places = [&](const ParameterBlock& block) {
    return address(block.p) | address(block.m) | address(block.v);
  };
  const bool vectors =
      call.units % kTile == 0 &&
      (address(call.gradient) | places(call.parameters.from) | places(call.parameters.to)) % 16 ==
          0;
  const auto kernel =
      call.rules.adam ? (vectors ? DenseStepKernel<true, true> : DenseStepKernel<true, false>)
                      : (vectors ? DenseStepKernel<false, true> : DenseStepKernel<false, false>);
  LaunchKernel("step on a dense layer", kernel,
               {.grid = GridOf(call.inputs, call.units), .block = kThreads, .stream = stream}, call,
               StepRules(call.rules));
}

}  // namespace uper
