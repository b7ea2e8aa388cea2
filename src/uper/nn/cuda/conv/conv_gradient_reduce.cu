#include "uper/base/check.h"
#include "uper/nn/cuda/conv/conv_gradient_reduce.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kSumThreads = 128;
constexpr int kSumFloats = kPartWeights;
static_assert(kSumFloats == 2 * kSumThreads);
constexpr int kBiasFilters = kPartFilters;
constexpr int kBiasRowsAtOnce = kSumFloats / kBiasFilters;

struct SumsCall {
  GradientReduction layers[kMaxGradientReductions];
  int count = 0;
};

// Adds two neighboring floats over all parts, in order.
__device__ inline float2 SumOfParts(const GradientReduction& layer, int at) {
  const float* from = layer.parts + at;
  float2 parts[kMaxParts];  // all are loaded before the first is added
#pragma unroll
  for (int i = 0; i < kMaxParts; ++i) {
    const auto* part = reinterpret_cast<const float2*>(from + std::ptrdiff_t{1} * i * layer.floats);
    parts[i] = i < layer.count ? *part : make_float2(0, 0);
  }
  float2 sum = parts[0];
#pragma unroll
  for (int i = 1; i < kMaxParts; ++i) {
    sum.x += parts[i].x;
    sum.y += parts[i].y;
  }
  return sum;
}

// The bias of kBiasFilters filters, starting at `filter`. Returns the thread's result if it has
// one, else 0.
__device__ inline float SumBias(const GradientReduction& layer, int filter, float2* scratch) {
  constexpr int kTwos = kBiasFilters / 2;
  const int thread = static_cast<int>(threadIdx.x);
  float2 sum = make_float2(0, 0);
  for (int row = thread / kTwos; row < layer.bias_rows; row += kBiasRowsAtOnce) {
    const float2 one =
        SumOfParts(layer, layer.weights + row * layer.filters + filter + thread % kTwos * 2);
    sum.x += one.x;
    sum.y += one.y;
  }
  scratch[thread] = sum;
  __syncthreads();
  if (thread >= kBiasFilters) return 0;
  const auto* rows = reinterpret_cast<const float*>(scratch) + thread;
  float all = 0;
#pragma unroll
  for (int row = 0; row < kBiasRowsAtOnce; ++row) all += rows[row * kBiasFilters];
  layer.d_bias[filter + thread] = all;
  return all;
}

__device__ inline double Square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

__global__ void __launch_bounds__(kSumThreads)
    ConvGradientReduceKernel(const __grid_constant__ SumsCall call) {
  __shared__ float2 rows[kSumThreads];
  __shared__ double scratch[kWarpSize];
  int index = 0;
  while (index + 1 < call.count &&
         static_cast<int>(blockIdx.x) >= call.layers[index + 1].first_block) {
    ++index;
  }
  const GradientReduction& layer = call.layers[index];
  const int block = static_cast<int>(blockIdx.x) - layer.first_block;
  const int weight_blocks = layer.weights / kSumFloats;
  double squares = 0;
  AwaitPredecessor();
  if (block < weight_blocks) {
    const int at = block * kSumFloats + 2 * static_cast<int>(threadIdx.x);
    const float2 sum = SumOfParts(layer, at);
    *reinterpret_cast<float2*>(layer.d_w + at) = sum;
    squares = Square(sum.x) + Square(sum.y);
  } else {
    squares = Square(SumBias(layer, (block - weight_blocks) * kBiasFilters, rows));
  }
  squares = BlockSum(squares, scratch);
  if (threadIdx.x == 0) layer.squares[block] = squares;
}

}  // namespace

void LaunchGradientReductions(std::span<const GradientReduction> layers, cudaStream_t stream,
                              LaunchOrder order) {
  UPER_CHECK(!layers.empty() && layers.size() <= kMaxGradientReductions,
             "more layers than one call has");
  SumsCall sums;
  int blocks = 0;
  for (const GradientReduction& layer : layers) {
    GradientReduction& to = sums.layers[sums.count++];
    to = layer;
    to.first_block = blocks;
    blocks += GradientReductionBlocks(layer.weights, layer.filters);
  }
  LaunchKernel("reducing convolution gradients", ConvGradientReduceKernel,
               {.grid = static_cast<unsigned>(blocks),
                .block = kSumThreads,
                .stream = stream,
                .order = order},
               sums);
}

}  // namespace uper::cuda
