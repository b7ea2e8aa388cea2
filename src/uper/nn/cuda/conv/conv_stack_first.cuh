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

namespace uper::picture_stack {

// The first layer is done on tensor cores, 8 filters at once, as LaunchExactPixelConvolution() does
// it. With more blocks than such groups of filters, a group's blocks share the rows.
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

// Some warps prepare the first layer's weights, a thread four of them, and the others its pixels.
inline constexpr int kWeightWarps = kTileSteps * kWindowHalves;
inline constexpr int kPixelWarps = kWarps - kWeightWarps;
static_assert(kWeightWarps * kWarp * 4 == First::kTaps * First::kChannels * kTileFilters);
static_assert(kPixelWarps > 0);

inline constexpr int kPlane = First::kSide * First::kSide;  // bytes

// The block's part of the first layer: 8 filters in some rows. Of the pixels of these rows it
// fetches one plane, for all blocks with the same rows.
template <int kBlocks>
struct FirstPart {
  using Mine = FirstShare<kBlocks>;
  static constexpr int kBytes = (Mine::kRows + 1) * First::kStride * First::kSide;
  static_assert(kGroups == First::kChannels && kBytes % 16 == 0);
  static_assert(Mine::kParts <= PlaneEntry::kCopies);
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
__device__ void StartPixels(const PictureStack& call, const FirstPart<kBlocks>& part, void* to,
                            ArrivalBarrier& barrier) {
  const int picture = static_cast<int>(blockIdx.y);
  const int plane = picture * First::kChannels + part.group;
  const auto* from =
      reinterpret_cast<const std::byte*>(call.pixels) + std::ptrdiff_t{plane} * kPlane;
  if (call.planes.entries != nullptr) from = AwaitPlane(call.planes, picture, plane, part.part);
  if (from == nullptr) {  // too late: time does not matter any more
    for (int i = 0; i < part.kBytes / 16; ++i) static_cast<uint4*>(to)[i] = make_uint4(0, 0, 0, 0);
    return barrier.Arrive();
  }
  barrier.Expect(part.kBytes);
  StartLoad(to, from + part.begin(), part.kBytes, CachePolicy(Keep::kAsLongAsOthers), barrier);
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

// Until all warps for weights are here.
__device__ inline void AwaitWeightWarps() {
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

}  // namespace uper::picture_stack
