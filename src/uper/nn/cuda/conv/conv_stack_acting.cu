#include <cuda_pipeline_primitives.h>

#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/conv/conv_stack_first.cuh"
#include "uper/nn/cuda/conv/conv_stack_layers.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

using namespace conv_stack;  // NOLINT: this kernel is built from it

// Shared memory, in floats.
template <int kBlocks>
struct Memory {
  static constexpr int kPixels = 0;
  static constexpr int kSecond = 0;  // the second layer's results replace the pixels
  static constexpr int kFirstWeights = FirstShare<kBlocks>::kPixels.size() * 4;
  static constexpr int kFirst = kFirstWeights + kWeightWarps * kWarp * 4;
  static constexpr int kSecondWeights = kFirst + kGroups * FirstGroup::kSlot;
  static constexpr int kThirdWeights = kSecondWeights + Share<Second, kBlocks>::kWeights;
  static constexpr int kSize = kThirdWeights + Share<Third, kBlocks>::kWeights;
  static_assert(kBlocks * Share<Second, kBlocks>::kSlot <= kFirst);
};

struct Barriers {
  ArrivalBarrier part;                   // this block's part of the image has arrived
  ArrivalBarrier pixels, first, second;  // data of the other blocks have arrived
};

// Called by one thread.
template <int kBlocks>
__device__ void PrepareBarriers(Barriers& barriers) {
  constexpr unsigned kOthers = kBlocks - 1;
  barriers.part.Initialize(1);
  barriers.pixels.Initialize(1);
  barriers.first.Initialize(1);
  barriers.second.Initialize(1);
  FenceArrivals();
  barriers.pixels.Expect((First::kChannels - 1) * FirstShare<kBlocks>::kPlane * sizeof(uint4));
  barriers.first.Expect(kOthers * FirstShare<kBlocks>::kResults * sizeof(float));
  barriers.second.Expect(kOthers * Share<Second, kBlocks>::kResults * sizeof(float));
}

// Sends the results that this block's threads have written to all other blocks.
template <typename Layer, int kBlocks>
__device__ void StartResults(const float* slot, const ArrivalBarrier& barrier) {
  FenceStores();
  __syncthreads();
  const int to = static_cast<int>(threadIdx.x);
  if (to < kBlocks && to != Rank()) {
    StartCopy(to, slot, sizeof(float) * Share<Layer, kBlocks>::kResults, barrier);
  }
}

// Waits for the first layer's results of all blocks; the weights of the other layers are on their
// way.
template <int kBlocks>
__device__ void FirstResults(const ConvStackActing& call, float* memory, Barriers& barriers) {
  using Place = Memory<kBlocks>;
  __shared__ LargestWeights largest;
  const FirstPart<kBlocks> part;
  auto* pixels = reinterpret_cast<uint4*>(memory + Place::kPixels);
  auto* weights = reinterpret_cast<uint4*>(memory + Place::kFirstWeights);
  float* results = memory + Place::kFirst + part.results();
  const bool prepares_weights = Warp() < kWeightWarps;
  const bool fetches_pixels = threadIdx.x == kWeightWarps * kWarp;
  if (fetches_pixels) PrepareBarriers<kBlocks>(barriers);
  __syncwarp();
  ArriveAtCluster();
  FourWeights four{};
  if (prepares_weights) four.Load(call.w[0] + part.first_filter());
  StartWeights<Second, kBlocks>(call.w[1], memory + Place::kSecondWeights);
  __pipeline_commit();
  cudaTriggerProgrammaticLaunchCompletion();
  if (fetches_pixels)
    StartPixels(call, part, results, barriers.part);  // may have to wait for the frame
  __syncwarp();
  const float unit = prepares_weights ? four.Prepare(largest, weights) : 0.0F;
  const LaneFinish epilogue(unit, call.scale, call.bias[0] + part.first_filter(), Lane());
  AwaitCluster();  // all blocks have initialized their barriers
  if (!prepares_weights) {
    barriers.part.Wait(0);
    SharePixels(part, reinterpret_cast<const unsigned*>(results),
                pixels + part.group * FirstShare<kBlocks>::kPlane, barriers.pixels);
  }
  __syncthreads();
  barriers.pixels.Wait(0);

  FirstLayer<kBlocks>(pixels, weights, epilogue, results, barriers.first);
  StartWeights<Third, kBlocks>(call.w[2], memory + Place::kThirdWeights);
  __pipeline_commit();
  __pipeline_wait_prior(1);  // the second layer's weights
  __syncthreads();
  barriers.first.Wait(0);
  __syncthreads();  // this block's own results are written, too
}

template <int kBlocks>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    ConvStackActingKernel(const __grid_constant__ ConvStackActing call) {
  using Place = Memory<kBlocks>;
  using MySecond = Share<Second, kBlocks>;
  using MyThird = Share<Third, kBlocks>;
  extern __shared__ __align__(16) float memory[];
  __shared__ Barriers barriers;
  FirstResults<kBlocks>(call, memory, barriers);

  float* second = memory + Place::kSecond + Rank() * MySecond::kSlot;
  OtherLayer<Second, FirstGroup, kBlocks>(memory + Place::kFirst, memory + Place::kSecondWeights,
                                          call.bias[1], [&](int position, int filter, float value) {
                                            second[position * MySecond::kFilters + filter] = value;
                                          });
  __pipeline_wait_prior(0);  // the third layer's weights
  StartResults<Second, kBlocks>(second, barriers.second);
  barriers.second.Wait(0);
  ArriveAtCluster();  // all data for this block have arrived

  float* out = call.out +
               static_cast<std::ptrdiff_t>(blockIdx.y) * Third::kPositions * Third::kFilters +
               Rank() * MyThird::kFilters;
  OtherLayer<Third, MySecond, kBlocks>(memory + Place::kSecond, memory + Place::kThirdWeights,
                                       call.bias[2], [&](int position, int filter, float value) {
                                         out[position * Third::kFilters + filter] = value;
                                       });
  AwaitCluster();  // all data from this block have arrived
}

template <typename Layer>
bool Is(const ConvolutionSpec& layer) {
  return layer.kernel == Layer::kKernel && layer.stride == Layer::kStride &&
         layer.filters == Layer::kFilters;
}

template <int kBlocks>
void Launch(const ConvStackActing& call, cudaStream_t stream) {
  LaunchKernel("convolutions of a decision", ConvStackActingKernel<kBlocks>,
               {.grid = dim3(kBlocks, call.count),
                .block = kThreads,
                .shared_bytes = sizeof(float) * Memory<kBlocks>::kSize,
                .stream = stream},
               call);
}

}  // namespace

bool SupportsConvStack(const InputSpec& input, std::span<const ConvolutionSpec> layers) {
  return input.type == InputType::kUint8 && input.layout == InputLayout::kPlanes &&
         input.channels == First::kChannels && input.height == First::kSide &&
         input.width == First::kSide && layers.size() == ConvStackActing::kLayers &&
         Is<First>(layers[0]) && Is<Second>(layers[1]) && Is<Third>(layers[2]);
}

// The sums do not depend on the number of blocks that split the filters. A large GPU has room for
// about 14 clusters of eight blocks.
void LaunchConvStackActing(const ConvStackActing& call, cudaStream_t stream) {
  constexpr int kFew = 14;
  if (call.count <= kFew) return Launch<8>(call, stream);
  Launch<4>(call, stream);
}

}  // namespace uper::cuda
