#pragma once

#include <cstddef>

#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/conv/conv_stack_shape.cuh"
#include "uper/nn/cuda/conv/first_layer/forward_exact_tile.cuh"
#include "uper/nn/cuda/observations/await_frame.cuh"
#include "uper/nn/cuda/ptx/bulk_copy.cuh"
#include "uper/nn/cuda/ptx/cluster_copy.cuh"
#include "uper/nn/cuda/ptx/fixed_point.cuh"
#include "uper/nn/cuda/ptx/mma.cuh"

namespace uper::cuda::conv_stack {

// The first layer runs on tensor cores, 8 filters at a time, like LaunchFirstLayerForwardExact().
// If there are more blocks than groups of 8 filters, the blocks of a group split the rows.
inline constexpr int kGroups = First::kFilters / kTileFilters;
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

// Some warps prepare the first layer's weights, four per thread; the other warps prepare its
// pixels.
inline constexpr int kWeightWarps = kTileSteps * kWindowHalves;
inline constexpr int kPixelWarps = kWarps - kWeightWarps;
static_assert(kWeightWarps * kWarp * 4 == First::kTaps * First::kChannels * kTileFilters);
static_assert(kPixelWarps > 0);

inline constexpr int kPlane = First::kSide * First::kSide;  // bytes

// The block's part of the first layer: 8 filters in some rows. The block also loads one channel
// plane of the pixels of these rows, for all blocks with the same rows.
template <int kBlocks>
struct FirstPart {
  using Mine = FirstShare<kBlocks>;
  static constexpr int kBytes = (Mine::kRows + 1) * First::kStride * First::kSide;
  static_assert(kGroups == First::kChannels && kBytes % 16 == 0);
  static_assert(Mine::kParts <= FramePointerEntry::kCopies);
  // Until results are written, their place holds the pixels as bytes.
  static_assert(kBytes <= Mine::kResults * sizeof(float));

  int group = Rank() / Mine::kParts;  // group of 8 filters; also the channel plane that it loads
  int part = Rank() % Mine::kParts;   // part of the rows

  // Bytes in the plane.
  __device__ int begin() const { return part * Mine::kRows * First::kStride * First::kSide; }
  __device__ int first_filter() const { return group * kTileFilters; }
  __device__ int results() const { return group * FirstGroup::kSlot + part * Mine::kResults; }
  __device__ bool SameRowsAs(int rank) const { return rank % Mine::kParts == part; }
};

// Called by one thread.
template <int kBlocks>
__device__ void StartPixels(const ConvStackActing& call, const FirstPart<kBlocks>& part, void* to,
                            ArrivalBarrier& barrier) {
  const int image = static_cast<int>(blockIdx.y);
  const int plane = image * First::kChannels + part.group;
  const auto* from =
      reinterpret_cast<const std::byte*>(call.pixels) + std::ptrdiff_t{plane} * kPlane;
  if (call.frames.entries != nullptr) from = AwaitFrame(call.frames, image, plane, part.part);
  if (from == nullptr) {  // timed out: speed does not matter any more
    for (int i = 0; i < part.kBytes / 16; ++i) static_cast<uint4*>(to)[i] = make_uint4(0, 0, 0, 0);
    return barrier.Arrive();
  }
  barrier.Expect(part.kBytes);
  StartLoad(to, from + part.begin(), part.kBytes, CachePolicy(CacheHint::kNormal), barrier);
}

// Rearranges rows of pixels into tiles of 4 x 4, stores them in `plane`, and sends them to the
// blocks that need them. Called by the pixel warps, each for some rows of tiles.
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

// Waits for all weight warps.
__device__ inline void AwaitWeightWarps() {
  asm volatile("bar.sync 1, %0;" ::"n"(kWeightWarps * kWarp) : "memory");
}

// The largest weights of filters, as MagnitudeBits(), per weight warp. Filters are 20 banks apart,
// so that 8 of them are read at once, 16 bytes each.
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

  // Loads weights of 8 filters. Called by the weight warps.
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

  // Stores the weights for StoredWeights. Returns the filter's unit.
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

// Computes the first layer to results [window][filter]. A warp computes two tiles and sends them to
// the other blocks.
template <int kBlocks>
__device__ void FirstLayer(const uint4* pixels, const uint4* weights, const LaneFinish& epilogue,
                           float* results, const ArrivalBarrier& barrier) {
  const PixelWindows windows(pixels, FirstShare<kBlocks>::kRows, First::kOutSide);
  static_assert(FirstShare<kBlocks>::kResults <= kWeightWarps * kPairWindows * kTileFilters);
  const int first = Warp() * kPairWindows;
  if (first >= windows.count) return;
  ConvolvePair(windows, StoredWeights{weights}, epilogue, first, Lane(),
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

}  // namespace uper::cuda::conv_stack
