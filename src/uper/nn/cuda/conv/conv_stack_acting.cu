#include <cuda_pipeline_primitives.h>

#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/conv/conv_stack_first.cuh"
#include "uper/nn/cuda/conv/conv_stack_layers.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper {
namespace {

using namespace picture_stack;  // NOLINT: what this kernel is made of

// Shared memory, in floats.
template <int kBlocks>
struct Memory {
  static constexpr int kPixels = 0;
  static constexpr int kSecond = 0;  // the second layer's results, in the place of the pixels
  static constexpr int kFirstWeights = FirstShare<kBlocks>::kPixels.size() * 4;
  static constexpr int kFirst = kFirstWeights + kWeightWarps * kWarp * 4;
  static constexpr int kSecondWeights = kFirst + kGroups * FirstGroup::kSlot;
  static constexpr int kThirdWeights = kSecondWeights + Share<Second, kBlocks>::kWeights;
  static constexpr int kSize = kThirdWeights + Share<Third, kBlocks>::kWeights;
  static_assert(kBlocks * Share<Second, kBlocks>::kSlot <= kFirst);
};

struct Barriers {
  ArrivalBarrier part;                   // of the picture, by this block
  ArrivalBarrier pixels, first, second;  // by the others
};

// By one thread.
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

// Results that this block's threads have written, to all other blocks.
template <typename Layer, int kBlocks>
__device__ void StartResults(const float* slot, const ArrivalBarrier& barrier) {
  FenceStores();
  __syncthreads();
  const int to = static_cast<int>(threadIdx.x);
  if (to < kBlocks && to != Rank()) {
    StartCopy(to, slot, sizeof(float) * Share<Layer, kBlocks>::kResults, barrier);
  }
}

// The first layer's results from all blocks, and weights of the others on their way.
template <int kBlocks>
__device__ void FirstResults(const PictureStack& call, float* memory, Barriers& barriers) {
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
  if (fetches_pixels) StartPixels(call, part, results, barriers.part);  // may have to wait
  __syncwarp();
  const float unit = prepares_weights ? four.Prepare(largest, weights) : 0.0F;
  const LaneFinish finish(unit, call.scale, call.bias[0] + part.first_filter(), Lane());
  AwaitCluster();  // all of them have barriers
  if (!prepares_weights) {
    barriers.part.Wait(0);
    SharePixels(part, reinterpret_cast<const unsigned*>(results),
                pixels + part.group * FirstShare<kBlocks>::kPlane, barriers.pixels);
  }
  __syncthreads();
  barriers.pixels.Wait(0);

  FirstLayer<kBlocks>(pixels, weights, finish, results, barriers.first);
  StartWeights<Third, kBlocks>(call.w[2], memory + Place::kThirdWeights);
  __pipeline_commit();
  __pipeline_wait_prior(1);  // the second layer's weights
  __syncthreads();
  barriers.first.Wait(0);
  __syncthreads();  // this block's own results are there, too
}

template <int kBlocks>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    PictureStackKernel(const __grid_constant__ PictureStack call) {
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
  ArriveAtCluster();  // what the others gave has arrived

  float* out = call.out +
               static_cast<std::ptrdiff_t>(blockIdx.y) * Third::kPositions * Third::kFilters +
               Rank() * MyThird::kFilters;
  OtherLayer<Third, MySecond, kBlocks>(memory + Place::kSecond, memory + Place::kThirdWeights,
                                       call.bias[2], [&](int position, int filter, float value) {
                                         out[position * Third::kFilters + filter] = value;
                                       });
  AwaitCluster();  // and what it gave to them
}

template <typename Layer>
bool Is(const ConvolutionSpec& layer) {
  return layer.kernel == Layer::kKernel && layer.stride == Layer::kStride &&
         layer.filters == Layer::kFilters;
}

template <int kBlocks>
void Launch(const PictureStack& call, cudaStream_t stream) {
  LaunchKernel("convolutions of a picture", PictureStackKernel<kBlocks>,
               {.grid = dim3(kBlocks, call.count),
                .block = kThreads,
                .shared_bytes = sizeof(float) * Memory<kBlocks>::kSize,
                .stream = stream},
               call);
}

}  // namespace

bool SuitsPictureStack(const InputSpec& input, std::span<const ConvolutionSpec> layers) {
  return input.type == InputType::kUint8 && input.layout == InputLayout::kPlanes &&
         input.channels == First::kChannels && input.height == First::kSide &&
         input.width == First::kSide && layers.size() == PictureStack::kLayers &&
         Is<First>(layers[0]) && Is<Second>(layers[1]) && Is<Third>(layers[2]);
}

// The sums are the same, however many blocks share the filters. A large GPU has room for some 14
// clusters of eight blocks.
void LaunchPictureStack(const PictureStack& call, cudaStream_t stream) {
  constexpr int kFew = 14;
  if (call.count <= kFew) return Launch<8>(call, stream);
  Launch<4>(call, stream);
}

}  // namespace uper
