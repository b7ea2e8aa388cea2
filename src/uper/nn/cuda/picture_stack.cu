#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstddef>

#include "uper/nn/cuda/bulk_copy.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/picture_stack.h"
#include "uper/nn/cuda/widen.cuh"

namespace uper {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 640;
constexpr int kWarps = kThreads / kWarp;

// A layer of the network.
template <int kSide_, int kChannels_, int kKernel_, int kStride_, int kFilters_>
struct Layer {
  static constexpr int kSide = kSide_;  // of its input
  static constexpr int kChannels = kChannels_;
  static constexpr int kKernel = kKernel_;
  static constexpr int kStride = kStride_;
  static constexpr int kFilters = kFilters_;
  static constexpr int kTaps = kKernel * kKernel;
  static constexpr int kOutSide = (kSide - kKernel) / kStride + 1;
  static constexpr int kPositions = kOutSide * kOutSide;
};
using First = Layer<84, 4, 8, 4, 32>;
using Second = Layer<First::kOutSide, First::kFilters, 4, 2, 64>;
using Third = Layer<Second::kOutSide, Second::kFilters, 3, 1, 64>;

constexpr int kPlane = First::kSide * First::kSide;  // bytes
constexpr int kPixels = First::kChannels * kPlane;

// What one block of a cluster has of a layer: some filters, four at a time.
template <typename Layer, int kBlocks>
struct Share {
  static constexpr int kFilters = Layer::kFilters / kBlocks;
  static constexpr int kFours = kFilters / 4;
  static constexpr int kWeights = Layer::kTaps * Layer::kChannels * kFilters;
  static constexpr int kResults = Layer::kPositions * kFilters;  // [position][filter]
  // Floats between the results of two blocks: the 32 channels of 32 lanes lie in 32 banks.
  static constexpr int kSlot =
      kResults + (Layer::kPositions * kFilters * (kWarp - 1) + kFilters) % kWarp;
  static_assert(kFilters % 4 == 0 && kSlot % 4 == 0);
};

// In the first layer a thread has a strip of a row's positions, one channel and half of the
// kernel's rows; eight neighbours add up their sums.
constexpr int kStrip = 5;
constexpr int kStrips = First::kOutSide / kStrip;  // of a row
constexpr int kHalves = 2;
constexpr int kHalfRows = First::kKernel / kHalves;
static_assert(First::kOutSide * kStrips * First::kChannels * kHalves == kThreads);
// Weights of four filters [tap][channel][filter], the second half 16 banks on.
constexpr int kHalfGap = 16;
constexpr int kFirstFour = First::kTaps * First::kChannels * 4 + kHalfGap;

// Shared memory, in floats.
template <int kBlocks>
struct Memory {
  static constexpr int kPixels = 0;
  static constexpr int kSecond = 0;  // the second layer's results, in the place of the pixels
  static constexpr int kFirstWeights = uper::kPixels / 4;
  static constexpr int kFirst = kFirstWeights + Share<First, kBlocks>::kFours * kFirstFour;
  static constexpr int kWeights = kFirst + kBlocks * Share<First, kBlocks>::kSlot;
  static constexpr int kSize =
      kWeights + std::max(Share<Second, kBlocks>::kWeights, Share<Third, kBlocks>::kWeights);
  static_assert(kBlocks * Share<Second, kBlocks>::kSlot <= kFirst);
};

struct Barriers {
  ArrivalBarrier part;                   // of the picture, by this block
  ArrivalBarrier pixels, first, second;  // by the others
};

__device__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
// Asked of one lane, so that the compiler knows it to be the same for all.
__device__ int Warp() { return __shfl_sync(~0U, static_cast<int>(threadIdx.x) / kWarp, 0); }
__device__ int Rank() { return static_cast<int>(blockIdx.x); }

// The address of the same thing in another block of the cluster.
__device__ unsigned AddressIn(int rank, const void* shared) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(SharedAddress(shared)), "r"(rank));
  return address;
}

// Copies that are started behind it and a barrier see what the thread has written.
__device__ void FenceForCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// To the same place of another block.
__device__ void StartCopy(int rank, const void* from, unsigned bytes,
                          const ArrivalBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(AddressIn(rank, from)),
      "r"(SharedAddress(from)), "r"(bytes), "r"(AddressIn(rank, barrier.state()))
      : "memory");
}

// The part of a picture that the block fetches, for all of them: of one plane.
template <int kBlocks>
struct PixelPart {
  int plane, begin, size;  // bytes

  __device__ PixelPart() {
    constexpr int kParts = kBlocks / First::kChannels;  // of a plane
    static_assert(kParts * First::kChannels == kBlocks && kPlane % 16 == 0);
    constexpr int kPart = (kPlane / 16 + kParts - 1) / kParts * 16;
    plane = Rank() / kParts;
    begin = Rank() % kParts * kPart;
    size = min(kPart, kPlane - begin);
  }
  __device__ int place() const { return plane * kPlane + begin; }  // in the picture
};

// By one thread.
template <int kBlocks>
__device__ void PrepareBarriers(const PixelPart<kBlocks>& part, Barriers& barriers) {
  constexpr unsigned kOthers = kBlocks - 1;
  barriers.part.Initialize(1);
  barriers.pixels.Initialize(1);
  barriers.first.Initialize(1);
  barriers.second.Initialize(1);
  FenceArrivals();
  barriers.pixels.Expect(kPixels - part.size);
  barriers.first.Expect(kOthers * Share<First, kBlocks>::kResults * sizeof(float));
  barriers.second.Expect(kOthers * Share<Second, kBlocks>::kResults * sizeof(float));
}

// By one warp.
template <int kBlocks>
__device__ void StartPart(const PictureStack& call, const PixelPart<kBlocks>& part, int picture,
                          std::uint8_t* to, ArrivalBarrier& barrier) {
  const void* from = call.pixels + static_cast<std::ptrdiff_t>(picture) * kPixels + part.place();
  if (call.planes != nullptr) {
    const std::byte* plane = call.planes[picture * First::kChannels + part.plane];
    from = plane == nullptr ? nullptr : plane + part.begin;
  }
  if (from == nullptr) {
    for (int i = 16 * Lane(); i < part.size; i += 16 * kWarp) {
      *reinterpret_cast<uint4*>(to + i) = make_uint4(0, 0, 0, 0);
    }
    FenceForCopies();
    __syncwarp();
    if (Lane() == 0) barrier.Arrive();
  } else if (Lane() == 0) {
    barrier.Expect(part.size);
    StartLoad(to, from, part.size, CachePolicy(Keep::kAsLongAsOthers), barrier);
  }
}

// To all other blocks: a thread for each of them.
template <int kBlocks>
__device__ void StartCopies(const void* from, unsigned bytes, const ArrivalBarrier& barrier) {
  const int to = static_cast<int>(threadIdx.x);
  if (to < kBlocks && to != Rank()) StartCopy(to, from, bytes, barrier);
}

// Results that this block's threads have written.
template <typename Layer, int kBlocks>
__device__ void StartResults(const float* slot, const ArrivalBarrier& barrier) {
  FenceForCopies();
  __syncthreads();
  StartCopies<kBlocks>(slot, sizeof(float) * Share<Layer, kBlocks>::kResults, barrier);
}

// Four filters at a time: [four][tap][channel] of the first layer ...
template <int kBlocks>
__device__ void StartFirstWeights(const float* w, float* weights) {
  using Mine = Share<First, kBlocks>;
  constexpr int kRows = First::kTaps * First::kChannels;
  for (int i = static_cast<int>(threadIdx.x); i < Mine::kWeights / 4; i += kThreads) {
    const int row = i / Mine::kFours;
    const int four = i % Mine::kFours;
    const int gap = row / (kRows / kHalves) * kHalfGap;
    __pipeline_memcpy_async(weights + four * kFirstFour + gap + 4 * row,
                            w + row * First::kFilters + Rank() * Mine::kFilters + 4 * four, 16);
  }
}

// ... and [tap][32 channels][four][channel] of the others.
template <typename Layer, int kBlocks>
__device__ void StartWeights(const float* w, float* weights) {
  using Mine = Share<Layer, kBlocks>;
  for (int i = static_cast<int>(threadIdx.x); i < Mine::kWeights / 4; i += kThreads) {
    const int row = i / Mine::kFours;
    const int four = i % Mine::kFours;
    const int to = (row / kWarp * Mine::kFours + four) * kWarp + row % kWarp;
    __pipeline_memcpy_async(weights + 4 * to,
                            w + row * Layer::kFilters + Rank() * Mine::kFilters + 4 * four, 16);
  }
}

// Which of a group of values a lane has: those from `first` to `end`, in its first places.
struct Held {
  int first, end;
};

// Adds up values over 2 * kBit lanes. Of two lanes that differ in a bit the lower one goes on with
// the first half of the values and the other with the second, down to the lowest bit.
template <int kBit, int kCount, int kSize>
__device__ void AddOverLanes(float (&values)[kSize], Held& held) {
  constexpr int kHalf = (kCount + 1) / 2;
  const bool upper = (Lane() & kBit) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float second = i + kHalf < kCount ? values[i + kHalf] : 0.0F;
    const float given = __shfl_xor_sync(~0U, upper ? values[i] : second, kBit);
    values[i] = (upper ? second : values[i]) + given;
  }
  if (upper) {
    held.first += kHalf;
  } else {
    held.end = min(held.end, held.first + kHalf);
  }
  if constexpr (kBit > 1) AddOverLanes<kBit / 2, kHalf>(values, held);
}

// Sums of 2 * kBit lanes, [filter][position], to store(filter, position, sum).
template <int kBit, int kPositions, int kSize, typename Store>
__device__ void StoreSums(float (&sums)[kSize], const Store& store) {
  Held held{.first = 0, .end = kSize};
  AddOverLanes<kBit, kSize>(sums, held);
  constexpr int kMost = (kSize + 2 * kBit - 1) / (2 * kBit);
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = held.first + i;
    if (at < held.end) store(at / kPositions, at % kPositions, sums[i]);
  }
}

// sums[filter][position] += value[position] * w, four filters from the first on.
template <int kPositions, int kSize>
__device__ void AddFour(const float (&values)[kPositions], const float4& w, int first,
                        float (&sums)[kSize]) {
#pragma unroll
  for (int p = 0; p < kPositions; ++p) {
    float* sum = sums + first * kPositions + p;
    sum[0] = fmaf(values[p], w.x, sum[0]);
    sum[kPositions] = fmaf(values[p], w.y, sum[kPositions]);
    sum[2 * kPositions] = fmaf(values[p], w.z, sum[2 * kPositions]);
    sum[3 * kPositions] = fmaf(values[p], w.w, sum[3 * kPositions]);
  }
}

// The first layer, to results [position][filter].
template <int kBlocks>
__device__ void FirstLayer(const float* memory, const PictureStack& call, float* results) {
  using Mine = Share<First, kBlocks>;
  const int thread = static_cast<int>(threadIdx.x);
  const int channel = thread % First::kChannels;
  const int half = thread / First::kChannels % kHalves;
  const int strip = thread / (First::kChannels * kHalves);
  const int y = strip / kStrips;
  const int x = strip % kStrips * kStrip;
  constexpr int kLine = First::kSide / 4;  // words of four pixels
  constexpr int kWords = kStrip + 1;       // of a strip's windows
  static_assert(First::kStride == 4 && First::kKernel == 8);
  const auto* pixels = reinterpret_cast<const unsigned*>(memory + Memory<kBlocks>::kPixels) +
                       (channel * First::kSide + y * First::kStride + half * kHalfRows) * kLine + x;
  const auto* weights = reinterpret_cast<const float4*>(
      memory + Memory<kBlocks>::kFirstWeights +
      half * (kHalfGap + kHalfRows * First::kKernel * First::kChannels * 4) + 4 * channel);
  float sums[Mine::kFilters * kStrip] = {};
#pragma unroll(Mine::kFours == 1 ? 2 : 1)
  for (int row = 0; row < kHalfRows; ++row) {
    float a[4 * kWords];
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const float4 four = Widen(pixels[row * kLine + word]);
      a[4 * word] = four.x;
      a[4 * word + 1] = four.y;
      a[4 * word + 2] = four.z;
      a[4 * word + 3] = four.w;
    }
#pragma unroll
    for (int column = 0; column < First::kKernel; ++column) {
      float values[kStrip];
#pragma unroll
      for (int p = 0; p < kStrip; ++p) values[p] = a[4 * p + column];
#pragma unroll
      for (int four = 0; four < Mine::kFours; ++four) {
        AddFour(values,
                weights[four * kFirstFour / 4 + (row * First::kKernel + column) * First::kChannels],
                4 * four, sums);
      }
    }
  }
  StoreSums<First::kChannels * kHalves / 2, kStrip>(sums, [&](int filter, int p, float sum) {
    const float bias = __ldg(call.bias[0] + Rank() * Mine::kFilters + filter);
    results[(y * First::kOutSide + x + p) * Mine::kFilters + filter] =
        fmaxf(0.0F, fmaf(call.scale, sum, bias));
  });
}

// sums += what a lane's channel adds to a row of positions through one row of their windows.
// `line`: where that row begins, pixels kPixel floats apart; `weights`: taps kTap apart.
template <typename Layer, int kPixel, int kTap, int kSize>
__device__ void AddRow(const float* line, const float4* weights, float (&sums)[kSize]) {
  constexpr int kStep = Layer::kStride;
  constexpr int kRow = Layer::kOutSide;
  constexpr int kTaps = Layer::kKernel / kStep;  // a stride apart: they see the same pixels
  static_assert(Layer::kKernel % kStep == 0);
#pragma unroll
  for (int phase = 0; phase < kStep; ++phase) {
    float a[kRow + kTaps - 1];
#pragma unroll
    for (int i = 0; i < kRow + kTaps - 1; ++i) a[i] = line[(phase + i * kStep) * kPixel];
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      float values[kRow];
#pragma unroll
      for (int x = 0; x < kRow; ++x) values[x] = a[x + tap];
      AddFour(values, weights[(phase + tap * kStep) * kTap], 0, sums);
    }
  }
}

// Row y of four filters, from the results of the layer before: what the lane's channels add.
template <typename Layer, typename Before, int kBlocks, int kSize>
__device__ void AddTaps(const float* in, const float* weights, int y, int four,
                        float (&sums)[kSize]) {
  using In = Share<Before, kBlocks>;
  constexpr int kFours = Share<Layer, kBlocks>::kFours;
  constexpr int kTap = Layer::kChannels * kFours;
#pragma unroll 1
  for (int group = 0; group < Layer::kChannels / kWarp; ++group) {
    const int channel = group * kWarp + Lane();
    const float* at = in + channel / In::kFilters * In::kSlot + channel % In::kFilters;
    const auto* w =
        reinterpret_cast<const float4*>(weights) + (group * kFours + four) * kWarp + Lane();
#pragma unroll 1
    for (int row = 0; row < Layer::kKernel; ++row) {
      AddRow<Layer, In::kFilters, kTap>(
          at + (y * Layer::kStride + row) * Layer::kSide * In::kFilters,
          w + row * Layer::kKernel * kTap, sums);
    }
  }
}

// A layer behind another: a warp has every kWarps-th row of four filters. Calls
// store(position, filter of the block, result).
template <typename Layer, typename Before, int kBlocks, typename Store>
__device__ void OtherLayer(const float* in, const float* weights, const float* bias,
                           const Store& store) {
  using Mine = Share<Layer, kBlocks>;
#pragma unroll 1
  for (int item = Warp(); item < Layer::kOutSide * Mine::kFours; item += kWarps) {
    const int y = item / Mine::kFours;
    const int four = item % Mine::kFours;
    float sums[4 * Layer::kOutSide] = {};
    AddTaps<Layer, Before, kBlocks>(in, weights, y, four, sums);
    StoreSums<kWarp / 2, Layer::kOutSide>(sums, [&](int filter, int x, float sum) {
      const int f = 4 * four + filter;
      store(y * Layer::kOutSide + x, f,
            fmaxf(0.0F, sum + __ldg(bias + Rank() * Mine::kFilters + f)));
    });
  }
}

template <int kBlocks>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    PictureStackKernel(const __grid_constant__ PictureStack call) {
  using Place = Memory<kBlocks>;
  using MyFirst = Share<First, kBlocks>;
  using MySecond = Share<Second, kBlocks>;
  using MyThird = Share<Third, kBlocks>;
  extern __shared__ __align__(16) float memory[];
  __shared__ Barriers barriers;
  const auto cluster = cooperative_groups::this_cluster();
  const int picture = static_cast<int>(blockIdx.y);
  const PixelPart<kBlocks> part;
  auto* part_at = reinterpret_cast<std::uint8_t*>(memory + Place::kPixels) + part.place();
  if (threadIdx.x == 0) PrepareBarriers<kBlocks>(part, barriers);
  if (Warp() == 0) StartPart(call, part, picture, part_at, barriers.part);
  cluster.barrier_arrive();
  StartFirstWeights<kBlocks>(call.w[0], memory + Place::kFirstWeights);
  __pipeline_commit();
  StartWeights<Second, kBlocks>(call.w[1], memory + Place::kWeights);
  __pipeline_commit();
  cudaTriggerProgrammaticLaunchCompletion();
  cluster.barrier_wait();  // all of them have barriers
  barriers.part.Wait(0);
  StartCopies<kBlocks>(part_at, part.size, barriers.pixels);
  __pipeline_wait_prior(1);
  __syncthreads();
  barriers.pixels.Wait(0);

  float* first = memory + Place::kFirst + Rank() * MyFirst::kSlot;
  FirstLayer<kBlocks>(memory, call, first);
  StartResults<First, kBlocks>(first, barriers.first);
  __pipeline_wait_prior(0);
  __syncthreads();
  barriers.first.Wait(0);

  float* second = memory + Place::kSecond + Rank() * MySecond::kSlot;
  OtherLayer<Second, First, kBlocks>(memory + Place::kFirst, memory + Place::kWeights, call.bias[1],
                                     [&](int position, int filter, float value) {
                                       second[position * MySecond::kFilters + filter] = value;
                                     });
  StartResults<Second, kBlocks>(second, barriers.second);
  StartWeights<Third, kBlocks>(call.w[2], memory + Place::kWeights);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  barriers.second.Wait(0);
  cluster.barrier_arrive();  // what the others gave has arrived

  float* out = call.out +
               static_cast<std::ptrdiff_t>(picture) * Third::kPositions * Third::kFilters +
               Rank() * MyThird::kFilters;
  OtherLayer<Third, Second, kBlocks>(memory + Place::kSecond, memory + Place::kWeights,
                                     call.bias[2], [&](int position, int filter, float value) {
                                       out[position * Third::kFilters + filter] = value;
                                     });
  cluster.barrier_wait();  // and what it gave to them
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
