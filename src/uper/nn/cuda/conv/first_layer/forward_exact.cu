#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/conv/first_layer/forward_exact.h"
#include "uper/nn/cuda/conv/first_layer/forward_exact_block.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

// Grid: groups of `rows` output rows, images, passes. One block per multiprocessor, so that a
// thread may have more than 128 registers.
__global__ void __launch_bounds__(ExactPixelBlock::kThreads, 1)
    ExactPixelConvolutionKernel(const __grid_constant__ FirstLayerForward call, int rows) {
  extern __shared__ __align__(16) float memory[];
  float* weights = memory;
  auto* pixels = reinterpret_cast<uint4*>(memory + ExactPixelBlock::kWeights);
  const FirstLayerForward::Pass& pass = call.list[blockIdx.z];
  const int first_row = static_cast<int>(blockIdx.x) * rows;
  const auto image = static_cast<std::ptrdiff_t>(blockIdx.y);
  const int out_rows = min(rows, call.out.height - first_row);
  ExactPixelBlock::StartPixels(
      pass.pixels +
          (image * kPixelChannels * call.in.height + first_row * kPixelStride) * call.in.width,
      call.in, PixelBlocks(out_rows, call.out.width), pixels);
  AwaitPredecessors();
  ExactPixelBlock::StartWeights(pass.w, weights);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  float* out = pass.out + (image * call.out.height + first_row) * call.out.width * kPixelFilters;
  ExactPixelBlock::Convolve(
      PixelWindows(pixels, out_rows, call.out.width), weights, call.scale, pass.bias,
      [&](int window, int filter, const float2& two) {
        __stcg(reinterpret_cast<float2*>(out + window * kPixelFilters + filter), two);
      });
}

}  // namespace

// An output is the same whatever block computes it. With 64 Atari images, blocks of 10 rows give
// each multiprocessor of a large GPU one block. With few images, blocks of two rows give many small
// blocks.
void LaunchFirstLayerForwardExact(const FirstLayerForward& call, cudaStream_t stream) {
  constexpr int kMany = 32;
  const int rows = call.count * call.passes >= kMany ? 10 : 2;
  const PixelBlocks blocks(rows, call.out.width);
  LaunchKernel(
      "first convolution", ExactPixelConvolutionKernel,
      {.grid = dim3((call.out.height + rows - 1) / rows, call.count, call.passes),
       .block = ExactPixelBlock::kThreads,
       .shared_bytes = sizeof(float) * ExactPixelBlock::kWeights + sizeof(uint4) * blocks.size(),
       .stream = stream,
       .order = call.order},
      call, rows);
}

}  // namespace uper::cuda
