#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kThreads = kHeadThreads;
constexpr int kWarps = kHeadWarps;

// Rows of weights that a warp loads at a time: enough to keep memory busy.
constexpr int kFetch = 4;

// Where a lane finds its outputs of a tile. Instead of outputs that do not exist, the lane reads
// the tile's last one. This is cheaper than a check per output. kWhole: the tile is a whole row,
// and only the last of a lane's outputs can be missing.
template <int kLane, bool kWhole>
struct LaneOutputs {
  int lane;
  int left;   // outputs from the tile's first on
  int first;  // first output of the lane
  int last;   // last output of the lane, relative to `first`

  __device__ LaneOutputs(int lane, int left)
      : lane(lane),
        left(left),
        first(min(lane, left - 1)),
        last(min(lane + (kLane - 1) * kWarpSize, left - 1) - first) {}

  __device__ bool IsThere(int j) const {
    return (kWhole && j + 1 < kLane) || lane + j * kWarpSize < left;
  }
  // Relative to `first`.
  __device__ int At(int j) const {
    if (j + 1 == kLane) return last;
    return kWhole ? j * kWarpSize : min(lane + j * kWarpSize, left - 1) - first;
  }
};

// Weights of one lane. `rows`: address of its first output in the first row. Rows are `stride`
// apart. Instead of rows beyond `count` the last row is read again.
template <int kLane, bool kWhole>
__device__ void FetchRows(const float* rows, int stride, int count,
                          const LaneOutputs<kLane, kWhole>& outputs, float (&w)[kFetch][kLane]) {
#pragma unroll
  for (int row = 0; row < kFetch; ++row) {
#pragma unroll
    for (int j = 0; j < kLane; ++j) w[row][j] = __ldg(rows + outputs.At(j));
    if (row + 1 < count) rows += stride;
  }
}

// Sums kSamples values over the lanes: lane 4 i gets the sum of value i.
__device__ float SumEach(float (&values)[kSamples]) {
  static_assert(kSamples == 8);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int half = 4; half >= 1; half /= 2) {
    const bool upper = (lane & 4 * half) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float kept = upper ? values[i + half] : values[i];
      const float given = upper ? values[i] : values[i + half];
      values[i] = kept + __shfl_xor_sync(kAllLanes, given, 4 * half);
    }
  }
  float sum = values[0];
  sum += __shfl_xor_sync(kAllLanes, sum, 2);
  return sum + __shfl_xor_sync(kAllLanes, sum, 1);
}

constexpr int kBlockUnits = kWarps * kFetch;  // hidden units per block of BackwardHiddenKernel

// Grid: action x member, groups of hidden units. A warp handles kFetch units; its lanes go along
// the outputs.
template <int kLane, bool kWhole>
__global__ void __launch_bounds__(kThreads, 3)
    BackwardHiddenKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, const float* w,
                         float* parts) {
  extern __shared__ __align__(16) int list[];
  __shared__ int count;
  __shared__ float d_tile[kSamples][kTileOutputs];  // 0 where there is no output
  const int action = static_cast<int>(blockIdx.x) / s.members;
  const int member = static_cast<int>(blockIdx.x) % s.members;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int unit = static_cast<int>(blockIdx.y) * kBlockUnits + warp * kFetch;
  const float* rows = w + BlockAt(s, action, member) +
                      static_cast<std::ptrdiff_t>(min(unit, s.hidden - 1)) * s.outputs;
  const int samples = ListSamples(gradient.batch, list, &count, [&](int b) {
    return __ldg(gradient.actions + b) == action && Learns(gradient.masks, b, member);
  });
  bool awaited = false;
  for (int first = 0; first < samples; first += kSamples) {
    const int here = min(kSamples, samples - first);
    float sums[kFetch][kSamples] = {};
    for (int tile = 0; tile < s.outputs; tile += kTileOutputs) {
      const LaneOutputs<kLane, kWhole> outputs(lane, s.outputs - tile);
      float weights[kFetch][kLane];
      FetchRows(rows + tile + outputs.first, s.outputs, s.hidden - unit, outputs, weights);
      if (!awaited) AwaitPredecessor();  // the weights were written before the previous kernel
      awaited = true;
      __syncthreads();
      for (int i = warp; i < here; i += kWarps) {
        const float* d_out = gradient.d_out + tile + outputs.first +
                             (list[first + i] * s.members + member) * s.outputs;
#pragma unroll
        for (int j = 0; j < kLane; ++j) {
          d_tile[i][lane + j * kWarpSize] =
              outputs.IsThere(j) ? __ldg(d_out + outputs.At(j)) : 0.0F;
        }
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kSamples; ++i) {
        if (i >= here) break;
#pragma unroll
        for (int j = 0; j < kLane; ++j) {
          const float d = d_tile[i][lane + j * kWarpSize];
#pragma unroll
          for (int row = 0; row < kFetch; ++row) {
            sums[row][i] = fmaf(weights[row][j], d, sums[row][i]);
          }
        }
      }
      if (kWhole) break;
    }
#pragma unroll
    for (int row = 0; row < kFetch; ++row) {
      const float sum = SumEach(sums[row]);
      const int sample = first + lane / 4;
      if (lane % 4 != 0 || sample >= samples || unit + row >= s.hidden) continue;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(member) * gradient.batch + list[sample];
      parts[at * s.hidden + unit + row] = sum;
    }
  }
  if (!awaited) AwaitPredecessor();
}
static_assert(kSamples <= kWarps, "a warp brings a sample");
template <int kLane, bool kWhole>
struct BackwardHiddenKernels {
  static auto Get() { return BackwardHiddenKernel<kLane, kWhole>; }
};

__global__ void SumHiddenKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                const float* parts, float* d_hidden) {
  AwaitPredecessor();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= gradient.batch * s.hidden_total()) return;
  const int b = i / s.hidden_total();
  const int unit = i % s.hidden_total() % s.hidden;
  const int first = s.separate_hidden ? i % s.hidden_total() / s.hidden : 0;
  const int last = s.separate_hidden ? first + 1 : s.members;
  float sum = 0;
#pragma unroll 5
  for (int k = first; k < last; ++k) {
    const float part =
        parts[(static_cast<std::ptrdiff_t>(k) * gradient.batch + b) * s.hidden + unit];
    sum += Learns(gradient.masks, b, k) ? part : 0.0F;  // otherwise `part` was not written
  }
  d_hidden[i] = gradient.hidden[i] > 0 ? sum : 0.0F;
}

__global__ void __launch_bounds__(kThreads)
    BackwardBiasKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, float* d_bias,
                       double* squares) {
  __shared__ double scratch[kWarpSize];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int outputs = s.members * s.outputs;
  float sum = 0;
  if (i < s.actions * outputs) {
#pragma unroll 8
    for (int b = 0; b < gradient.batch; ++b) {
      if (__ldg(gradient.actions + b) != i / outputs) continue;
      sum += __ldg(gradient.d_out + static_cast<std::ptrdiff_t>(b) * outputs + i % outputs);
    }
    d_bias[i] = sum;
  }
  const double square = BlockSum(static_cast<double>(sum) * static_cast<double>(sum), scratch);
  if (threadIdx.x == 0) squares[blockIdx.x] = square;
}

__global__ void SharedBiasKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                 float* d_bias, double* squares) {
  __shared__ double scratch[kWarpSize];
  double sum = 0;
  const int size = gradient.batch * s.members * s.outputs;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    sum += static_cast<double>(gradient.d_out[i]);
  }
  sum = BlockSum(sum, scratch);
  if (threadIdx.x > 0) return;
  const float rounded = static_cast<float>(sum);
  *d_bias = rounded;
  *squares = static_cast<double>(rounded) * static_cast<double>(rounded);
}

__device__ double Dot(const float* x, const float* y, int size, int lane) {
  double sum = 0;
  for (int i = lane; i < size; i += kWarpSize) {
    sum += static_cast<double>(__ldg(x + i)) * static_cast<double>(__ldg(y + i));
  }
  return WarpSum(sum);
}

// kSquareParts blocks per member; one warp per pair of samples s <= t.
__global__ void __launch_bounds__(kThreads)
    HeadSquaresKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, double* squares) {
  extern __shared__ __align__(16) float memory[];
  __shared__ int count;
  __shared__ double warp_sums[kWarpSize];
  int* list = reinterpret_cast<int*>(memory);
  const int member = static_cast<int>(blockIdx.x) / kSquareParts;
  const int part = static_cast<int>(blockIdx.x) % kSquareParts;
  const int samples = ListSamples(gradient.batch, list, &count,
                                  [&](int b) { return Learns(gradient.masks, b, member); });
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const auto units = [&](int b) {
    return gradient.hidden + static_cast<std::ptrdiff_t>(b) * s.hidden_total() +
           MemberUnits(s, member);
  };
  const auto d_out = [&](int b) {
    return gradient.d_out + (static_cast<std::ptrdiff_t>(b) * s.members + member) * s.outputs;
  };
  double sum = 0;
  for (int pair = part * kWarps + warp; pair < samples * samples; pair += kSquareParts * kWarps) {
    const int i = pair / samples;
    const int j = pair % samples;
    if (i > j || gradient.actions[list[i]] != gradient.actions[list[j]]) continue;
    const double product = Dot(units(list[i]), units(list[j]), s.hidden, lane) *
                           Dot(d_out(list[i]), d_out(list[j]), s.outputs, lane);
    sum += i == j ? product : 2 * product;
  }
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double total = 0;
  for (int i = 0; i < kWarps; ++i) total += warp_sums[i];
  squares[blockIdx.x] = total;
}

// One block per (action, member, hidden unit).
__global__ void HeadWeightsKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                  float* dw) {
  const int unit = static_cast<int>(blockIdx.x) % s.hidden;
  const int block = static_cast<int>(blockIdx.x) / s.hidden;
  const int action = block / s.members;
  const int member = block % s.members;
  for (int m = static_cast<int>(threadIdx.x); m < s.outputs; m += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (int b = 0; b < gradient.batch; ++b) {
      if (gradient.actions[b] != action || !Learns(gradient.masks, b, member)) continue;
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(b) * s.members + member;
      sum = fmaf(gradient.hidden[static_cast<std::ptrdiff_t>(b) * s.hidden_total() +
                                 MemberUnits(s, member) + unit],
                 gradient.d_out[row * s.outputs + m], sum);
    }
    dw[static_cast<std::ptrdiff_t>(blockIdx.x) * s.outputs + m] = sum;
  }
}

void CheckLaunch(const char* what) { CheckCuda(cudaGetLastError(), what); }

}  // namespace

void LaunchBackwardHidden(const HeadShape& shape, const HeadGradient& gradient, const float* w,
                          float* parts, cudaStream_t stream, LaunchOrder order) {
  const std::size_t bytes = sizeof(int) * gradient.batch;
  const dim3 grid(shape.actions * shape.members, CeilDiv(shape.hidden, kBlockUnits));
  LaunchKernel("gradient of the hidden layer", KernelFor<BackwardHiddenKernels>(shape.outputs),
               {grid, kThreads, bytes, stream, order}, shape, gradient, w, parts);
}

void LaunchSumHidden(const HeadShape& shape, const HeadGradient& gradient, const float* parts,
                     float* d_hidden, cudaStream_t stream, LaunchOrder order) {
  const int size = gradient.batch * shape.hidden_total();
  LaunchKernel("sum of the hidden layer's gradient", SumHiddenKernel,
               {static_cast<unsigned>(CeilDiv(size, kThreads)), kThreads, 0, stream, order}, shape,
               gradient, parts, d_hidden);
}

int BiasBlocks(const HeadShape& shape) {
  return shape.shared_bias ? 1 : CeilDiv(shape.actions * shape.members * shape.outputs, kThreads);
}

void LaunchBackwardBias(const HeadShape& shape, const HeadGradient& gradient, float* d_bias,
                        double* squares, cudaStream_t stream) {
  LaunchKernel(
      "gradient of the head's bias", shape.shared_bias ? SharedBiasKernel : BackwardBiasKernel,
      {.grid = static_cast<unsigned>(BiasBlocks(shape)), .block = kThreads, .stream = stream},
      shape, gradient, d_bias, squares);
}

void LaunchHeadSquares(const HeadShape& shape, const HeadGradient& gradient, double* squares,
                       cudaStream_t stream) {
  LaunchKernel("norm of the head's gradient", HeadSquaresKernel,
               {.grid = static_cast<unsigned>(HeadSquareCount(shape)),
                .block = kThreads,
                .shared_bytes = sizeof(int) * gradient.batch,
                .stream = stream},
               shape, gradient, squares);
}

void LaunchHeadWeights(const HeadShape& shape, const HeadGradient& gradient, float* dw,
                       cudaStream_t stream) {
  const int rows = shape.actions * shape.members * shape.hidden;
  HeadWeightsKernel<<<rows, std::min(kThreads, CeilDiv(shape.outputs, kWarpSize) * kWarpSize), 0,
                      stream>>>(shape, gradient, dw);
  CheckLaunch("gradient of the head");
}

}  // namespace uper::cuda
