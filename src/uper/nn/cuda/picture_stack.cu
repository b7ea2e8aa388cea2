#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstddef>

#include "uper/nn/cuda/bulk_copy.cuh"
#include "uper/nn/cuda/cluster_copy.cuh"
#include "uper/nn/cuda/exact_pixel_tile.cuh"
#include "uper/nn/cuda/fixed_point.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/mma.cuh"
#include "uper/nn/cuda/picture_stack.h"

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

// The results of one of kBlocks that share out the filters of a layer: [position][filter].
template <typename Layer, int kBlocks>
struct Results {
  static constexpr int kFilters = Layer::kFilters / kBlocks;
  static constexpr int kResults = Layer::kPositions * kFilters;
  // Floats between the results of two blocks: the 32 channels of 32 lanes lie in 32 banks.
  static constexpr int kSlot =
      kResults + (Layer::kPositions * kFilters * (kWarp - 1) + kFilters) % kWarp;
  static_assert(kFilters % 4 == 0 && kSlot % 4 == 0);
};

// What such a block has of a layer behind the first: filters four at a time.
template <typename Layer, int kBlocks>
struct Share : Results<Layer, kBlocks> {
  static constexpr int kFours = Share::kFilters / 4;
  static constexpr int kWeights = Layer::kTaps * Layer::kChannels * Share::kFilters;
};

// The first layer is done on tensor cores, 8 filters at once, as LaunchExactPixelConvolution() does
// it. With more blocks than such groups of filters, a group's blocks share the rows.
constexpr int kGroups = First::kFilters / kTileFilters;
using FirstGroup = Results<First, kGroups>;
template <int kBlocks>
struct FirstShare {
  static constexpr int kParts = kBlocks / kGroups;
  static constexpr int kRows = First::kOutSide / kParts;
  static constexpr int kResults = kRows * First::kOutSide * kTileFilters;
  static constexpr PixelBlocks kPixels{kRows, First::kOutSide};
  static constexpr int kPlane = kPixels.plane();
  static_assert(kBlocks * kResults == First::kPositions * First::kFilters);
};

// Some warps prepare the first layer's weights, a thread four of them, and the others its pixels.
constexpr int kWeightWarps = kTileSteps * kWindowHalves;
constexpr int kPixelWarps = kWarps - kWeightWarps;
static_assert(kWeightWarps * kWarp * 4 == First::kTaps * First::kChannels * kTileFilters);
static_assert(kPixelWarps > 0);

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

__device__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
// Asked of one lane, so that the compiler knows it to be the same for all.
__device__ int Warp() { return __shfl_sync(~0U, static_cast<int>(threadIdx.x) / kWarp, 0); }
__device__ int Rank() { return static_cast<int>(blockIdx.x); }

// The block's part of the first layer: 8 filters in some rows. Of the pixels of these rows it
// fetches one plane, for all blocks with the same rows.
template <int kBlocks>
struct FirstPart {
  using Mine = FirstShare<kBlocks>;
  static constexpr int kBytes = (Mine::kRows + 1) * First::kStride * First::kSide;
  static_assert(kGroups == First::kChannels && kBytes % 16 == 0);
  // Until there are results, their place has the pixels as they came.
  static_assert(kBytes <= Mine::kResults * sizeof(float));

  int group = Rank() / Mine::kParts;  // of filters; the plane that it fetches
  int part = Rank() % Mine::kParts;   // of the rows

  // In the plane, bytes.
  __device__ int begin() const { return part * Mine::kRows * First::kStride * First::kSide; }
  __device__ int first_filter() const { return group * kTileFilters; }
  __device__ int results() const { return group * FirstGroup::kSlot + part * Mine::kResults; }
  __device__ bool SameRowsAs(int rank) const { return rank % Mine::kParts == part; }
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

// By one warp.
template <int kBlocks>
__device__ void StartPixels(const PictureStack& call, const FirstPart<kBlocks>& part, void* to,
                            ArrivalBarrier& barrier) {
  const int plane = static_cast<int>(blockIdx.y) * First::kChannels + part.group;
  const void* from = call.pixels + static_cast<std::ptrdiff_t>(plane) * kPlane + part.begin();
  if (call.planes != nullptr) {
    const std::byte* there = call.planes[plane];
    from = there == nullptr ? nullptr : there + part.begin();
  }
  if (from == nullptr) {
    for (int i = Lane(); i < part.kBytes / 16; i += kWarp) {
      static_cast<uint4*>(to)[i] = make_uint4(0, 0, 0, 0);
    }
    __syncwarp();
    if (Lane() == 0) barrier.Arrive();
  } else if (Lane() == 0) {
    barrier.Expect(part.kBytes);
    StartLoad(to, from, part.kBytes, CachePolicy(Keep::kAsLongAsOthers), barrier);
  }
}

// Brings rows of pixels into blocks, of which `plane` has all, and to the others that need them. By
// the warps for pixels, each some rows of blocks.
template <int kBlocks>
__device__ void SharePixels(const FirstPart<kBlocks>& part, const unsigned* rows, uint4* plane,
                            const ArrivalBarrier& barrier) {
  constexpr PixelBlocks kBlocked = FirstShare<kBlocks>::kPixels;
  constexpr int kColumns = First::kSide / 4;
  constexpr int kMost = (kBlocked.rows + kPixelWarps - 1) / kPixelWarps;
  const int begin = (Warp() - kWeightWarps) * kMost;
  const int count = min(kMost, kBlocked.rows - begin);
  if (Lane() < kColumns) {
    uint4 blocks[kMost];
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const unsigned* from = rows + (begin + min(i, count - 1)) * 4 * kColumns + Lane();
      blocks[i] = make_uint4(from[0], from[kColumns], from[2 * kColumns], from[3 * kColumns]);
    }
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      if (i < count) plane[(begin + i) * kBlocked.pitch + Lane()] = blocks[i];
    }
  }
  FenceStores();
  __syncwarp();
  if (Lane() < kBlocks && Lane() != Rank() && part.SameRowsAs(Lane())) {
    StartCopy(Lane(), plane + begin * kBlocked.pitch, count * kBlocked.pitch * sizeof(uint4),
              barrier);
  }
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

// Until all warps for weights are here.
__device__ void AwaitWeightWarps() {
  asm volatile("bar.sync 1, %0;" ::"n"(kWeightWarps * kWarp) : "memory");
}

// The largest weights of filters, as MagnitudeBits(), by the warps that found them. Filters are
// apart by 20 banks: 8 of them read 16 bytes at once.
struct alignas(16) LargestWeights {
  unsigned bits[kTileFilters][kWeightWarps + 4];

  __device__ unsigned Of(int filter) const {
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < kWeightWarps; i += 4) {
      const auto four = *reinterpret_cast<const uint4*>(bits[filter] + i);
      largest = max(max(largest, max(four.x, four.y)), max(four.z, four.w));
    }
    return largest;
  }
};

// Four weights of the first layer: what a lane needs in one step for half of the columns.
struct FourWeights {
  float values[4];

  // Of 8 filters, by the warps for weights.
  __device__ void Load(const float* w) {
    const int step = Warp() / kWindowHalves;
    const int column = Warp() % kWindowHalves * 4;
    const int row = step % kWindowHalves * First::kStride + MmaPlace(Lane());
    const int channel = step / kWindowHalves;
    w += ((row * First::kKernel + column) * First::kChannels + channel) * First::kFilters +
         MmaGroup(Lane());
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = __ldg(w + i * First::kChannels * First::kFilters);
  }

  // Stores them for StoredWeights. Returns the filter's unit.
  __device__ float Prepare(LargestWeights& filters, uint4* weights) const {
    const int filter = MmaGroup(Lane());
    const int warp = Warp();
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) largest = max(largest, MagnitudeBits(values[i]));
    largest = max(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = max(largest, __shfl_xor_sync(~0U, largest, 2));
    if (MmaPlace(Lane()) == 0) filters.bits[filter][warp] = largest;
    AwaitWeightWarps();
    const FixedPoint fixed(filters.Of(filter));
    unsigned words[kWholeBytes];
    CutIntoBytes(fixed, values, words);
    weights[threadIdx.x] = make_uint4(words[0], words[1], words[2], words[3]);
    return fixed.unit();
  }
};

// A lane's weights for ConvolvePair(): [step][half of the columns][lane][byte].
struct StoredWeights {
  const uint4* weights;

  __device__ StepWeights operator()(int step) const {
    const uint4 low = weights[step * kWindowHalves * kWarp + Lane()];
    const uint4 high = weights[(step * kWindowHalves + 1) * kWarp + Lane()];
    return {{{low.x, high.x}, {low.y, high.y}, {low.z, high.z}, {low.w, high.w}}};
  }
};

// Of the layers behind the first, four filters at a time: [tap][32 channels][four][channel].
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

// Sums of all lanes, [filter][position], to store(filter, position, sum).
template <int kPositions, int kSize, typename Store>
__device__ void StoreSums(float (&sums)[kSize], const Store& store) {
  Held held{.first = 0, .end = kSize};
  AddOverLanes<kWarp / 2, kSize>(sums, held);
  constexpr int kMost = (kSize + kWarp - 1) / kWarp;
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = held.first + i;
    if (at < held.end) store(at / kPositions, at % kPositions, sums[i]);
  }
}

// sums[filter][position] += value[position] * w, for four filters.
template <int kPositions, int kSize>
__device__ void AddFour(const float (&values)[kPositions], const float4& w, float (&sums)[kSize]) {
#pragma unroll
  for (int p = 0; p < kPositions; ++p) {
    float* sum = sums + p;
    sum[0] = fmaf(values[p], w.x, sum[0]);
    sum[kPositions] = fmaf(values[p], w.y, sum[kPositions]);
    sum[2 * kPositions] = fmaf(values[p], w.z, sum[2 * kPositions]);
    sum[3 * kPositions] = fmaf(values[p], w.w, sum[3 * kPositions]);
  }
}

// The first layer, to results [window][filter]: a warp has two tiles and sends them to the others.
template <int kBlocks>
__device__ void FirstLayer(const uint4* pixels, const uint4* weights, const LaneFinish& finish,
                           float* results, const ArrivalBarrier& barrier) {
  const PixelWindows windows(pixels, FirstShare<kBlocks>::kRows, First::kOutSide);
  static_assert(FirstShare<kBlocks>::kResults <= kWeightWarps * kPairWindows * kTileFilters);
  const int first = Warp() * kPairWindows;
  if (first >= windows.count) return;
  ConvolvePair(windows, StoredWeights{weights}, finish, first, Lane(),
               [&](int window, const float2& two) {
                 float* at = results + window * kTileFilters + 2 * MmaPlace(Lane());
                 *reinterpret_cast<float2*>(at) = two;
               });
  FenceStores();
  __syncwarp();
  if (Lane() < kBlocks && Lane() != Rank()) {
    const int count = min(kPairWindows, windows.count - first);
    StartCopy(Lane(), results + first * kTileFilters, count * kTileFilters * sizeof(float),
              barrier);
  }
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
      AddFour(values, weights[(phase + tap * kStep) * kTap], sums);
    }
  }
}

// Row y of four filters, from the results of the layer before, of which a slot has an In: what the
// lane's channels add.
template <typename Layer, typename In, int kBlocks, int kSize>
__device__ void AddTaps(const float* in, const float* weights, int y, int four,
                        float (&sums)[kSize]) {
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
template <typename Layer, typename In, int kBlocks, typename Store>
__device__ void OtherLayer(const float* in, const float* weights, const float* bias,
                           const Store& store) {
  using Mine = Share<Layer, kBlocks>;
#pragma unroll 1
  for (int item = Warp(); item < Layer::kOutSide * Mine::kFours; item += kWarps) {
    const int y = item / Mine::kFours;
    const int four = item % Mine::kFours;
    float sums[4 * Layer::kOutSide] = {};
    AddTaps<Layer, In, kBlocks>(in, weights, y, four, sums);
    StoreSums<Layer::kOutSide>(sums, [&](int filter, int x, float sum) {
      const int f = 4 * four + filter;
      store(y * Layer::kOutSide + x, f,
            LargerOrNan(0.0F, sum + __ldg(bias + Rank() * Mine::kFilters + f)));
    });
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
  if (threadIdx.x == kWeightWarps * kWarp) PrepareBarriers<kBlocks>(barriers);
  __syncwarp();
  ArriveAtCluster();
  FourWeights four{};
  if (prepares_weights) four.Load(call.w[0] + part.first_filter());
  if (Warp() == kWeightWarps) StartPixels(call, part, results, barriers.part);
  StartWeights<Second, kBlocks>(call.w[1], memory + Place::kSecondWeights);
  __pipeline_commit();
  cudaTriggerProgrammaticLaunchCompletion();
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
