#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/conv/first_layer/pixel_tiles.cuh"
#include "uper/nn/cuda/conv/first_layer/weight_gradient.h"
#include "uper/nn/cuda/ptx/byte_mma.cuh"
#include "uper/nn/cuda/ptx/fixed_point.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kFilters = kPixelFilters;
constexpr int kKernel = kPixelKernel;
constexpr int kChannels = kPixelChannels;
constexpr int kWeights = kKernel * kKernel * kChannels * kFilters;
// Terms of one image: first for the weights, in the order of memory, then for the bias.
constexpr int kImageParts = kWeights + kFilters;

// A block computes all taps and 8 filters of one image. The pixels may be ready before d_out is, so
// blocks split d_out, not the pixels. A warp handles one channel: 64 taps, at half of the
// positions.
constexpr int kBlockFilters = 8;
constexpr int kHalves = 2;
constexpr int kWarps = kChannels * kHalves;
constexpr int kThreads = kWarps * kWarpSize;

// Positions come in chunks of kColumnWindowRows rows. Lanes of the same place handle every fourth
// row, in groups of 4 neighboring positions. A step of the tensor cores takes two groups.
constexpr int kRowGroups = kColumnPositions / 4;
constexpr int kGroups = kColumnWindowRows / 4 * kRowGroups;
constexpr int kSteps = (kGroups + 1) / 2;
constexpr int kOwnSteps =
    (kSteps + kWarps - 1) / kWarps;  // maximum number of steps whose d_out a warp prepares

// The sum of products of bytes has 32 bits.
constexpr int kMostPositions = 0x7fffffff / (255 * 255);

// The taps of a warp are 4 tiles of the hardware. Tile (half, pair) has columns 4 half + 2 pair and
// the next one of the kernel, 8 rows each.
constexpr int kTiles = 4;
constexpr int kTileSums = 4;  // per lane
constexpr int kHandedOver = kTiles / kHalves * kTileSums;

struct SharedMemory {
  uint4 pixels[kChannels * kColumnPlane];
  // The bytes of d_out as whole numbers, [step][lower two bytes, upper two][lane].
  uint4 d_out[kSteps][2][kWarpSize];
  // Sums that a warp passes to the warp with the other half of the positions.
  long long sums[kWarps][kHandedOver][kWarpSize];
  long long bias[kWarps][kBlockFilters];
  unsigned largest[kWarps][kBlockFilters];  // MagnitudeBits()
};

// A lane's share of d_out: one filter, and in some steps the 8 positions that the lane gives to the
// tensor cores. Positions outside the image count as 0.
class DOutShare {
 public:
  __device__ DOutShare(const FirstLayerWeightGradient& call, int image, int first_filter, int warp,
                       int lane)
      : from_(call.d_out + std::ptrdiff_t{1} * image * call.out.height * call.out.width * kFilters +
              first_filter + MmaGroup(lane)),
        height_(call.out.height),
        width_(call.out.width),
        warp_(warp),
        lane_(lane) {
#pragma unroll
    for (int i = 0; i < 2 * kOwnSteps; ++i) {
      first_fours_[i] = FourOf(0, 2 * (warp_ + i / 2 * kWarps) + i % 2);
    }
  }

  // The values of the first chunk are kept.
  __device__ void FetchFirst() {
#pragma unroll
    for (int i = 0; i < kOwnSteps; ++i) {
      Load(first_fours_[2 * i], first_fours_[2 * i + 1], first_[i]);
    }
  }

  // The largest value of all chunks, as MagnitudeBits().
  __device__ unsigned Largest() const {
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < kOwnSteps; ++i) largest = max(largest, LargestOf(first_[i]));
#pragma unroll 1
    for (int row = kColumnWindowRows; row < height_; row += kColumnWindowRows) {
#pragma unroll 1
      for (int step = warp_; step < kSteps; step += kWarps) {
        float values[kStepPositions];
        Load(FourOf(row, 2 * step), FourOf(row, 2 * step + 1), values);
        largest = max(largest, LargestOf(values));
      }
    }
    return largest;
  }

  // Converts to whole numbers and cuts them into bytes. Returns their sum.
  __device__ long long StoreFirst(const FixedPoint& fixed, SharedMemory& memory) const {
    long long sum = 0;
#pragma unroll
    for (int i = 0; i < kOwnSteps; ++i) sum += Store(warp_ + i * kWarps, first_[i], fixed, memory);
    return sum;
  }

  // The same for the chunk that begins with this row.
  __device__ long long Bring(int first_row, const FixedPoint& fixed, SharedMemory& memory) const {
    long long sum = 0;
#pragma unroll 1
    for (int step = warp_; step < kSteps; step += kWarps) {
      float values[kStepPositions];
      Load(FourOf(first_row, 2 * step), FourOf(first_row, 2 * step + 1), values);
      sum += Store(step, values, fixed, memory);
    }
    return sum;
  }

 private:
  static constexpr int kStepPositions = 8;

  // Four neighbors of a row, some of which may not exist.
  struct Four {
    const float* from;
    int there;
  };

  __device__ Four FourOf(int first_row, int group) const {
    const int row = first_row + group / kRowGroups * 4 + MmaPlace(lane_);
    const int column = group % kRowGroups * 4;
    return {.from = from_ + (row * width_ + column) * kFilters,
            .there = group < kGroups && row < height_ ? width_ - column : 0};
  }

  __device__ static void Load(const Four& one, const Four& two, float (&values)[kStepPositions]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = i < one.there ? one.from[i * kFilters] : 0.0F;
#pragma unroll
    for (int i = 0; i < 4; ++i) values[4 + i] = i < two.there ? two.from[i * kFilters] : 0.0F;
  }

  __device__ static unsigned LargestOf(const float (&values)[kStepPositions]) {
    unsigned largest = 0;
#pragma unroll
    for (const float value : values) largest = max(largest, MagnitudeBits(value));
    return largest;
  }

  __device__ long long Store(int step, const float (&values)[kStepPositions],
                             const FixedPoint& fixed, SharedMemory& memory) const {
    if (step >= kSteps) return 0;
    long long sum = 0;
    unsigned bytes[2][4];  // [group][byte of all four positions]
#pragma unroll
    for (int i = 0; i < kStepPositions; ++i) {
      const int whole = fixed.Whole(values[i]);
      sum += whole;
      bytes[i / 4][i % 4] = static_cast<unsigned>(whole);
    }
    TransposeBytes(bytes[0]);
    TransposeBytes(bytes[1]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      memory.d_out[step][i][lane_] =
          make_uint4(bytes[0][2 * i], bytes[1][2 * i], bytes[0][2 * i + 1], bytes[1][2 * i + 1]);
    }
    return sum;
  }

  const float* from_;
  int height_, width_, warp_, lane_;
  Four first_fours_[2 *
                    kOwnSteps];  // loaded early: their addresses are known before d_out is written
  float first_[kOwnSteps][kStepPositions];
};

// The maximum over all warps' `largest` of a filter.
__device__ inline FixedPoint FixedPointOf(const SharedMemory& memory, int filter) {
  unsigned largest = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) largest = max(largest, memory.largest[warp][filter]);
  return FixedPoint(largest);
}

// Sum over the lanes of a group, returned to all of them.
template <typename T, typename Combine>
__device__ T OverPlaces(T value, const Combine& combine) {
  value = combine(value, __shfl_xor_sync(kAllLanes, value, 1));
  return combine(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// A warp's sum of d_out per filter. Not in registers, because they are scarce.
__device__ inline void AddToBias(long long before, long long sum, int warp, int lane,
                                 SharedMemory& memory) {
  sum = OverPlaces(sum, [](long long x, long long y) { return x + y; });
  if (MmaPlace(lane) == 0) memory.bias[warp][MmaGroup(lane)] = before + sum;
}

// The data that a lane reads for a step: units of pixels and the bytes of d_out.
struct StepWords {
  uint4 units[2][2];  // [group][the unit of its windows, the next unit]
  uint4 d_out[2];

  __device__ StepWords(const SharedMemory& memory, int channel, int step, int lane) {
    const int row = MmaPlace(lane) * kPixelStride + MmaGroup(lane);
    const uint4* first = memory.pixels + channel * kColumnPlane + PlaceOfColumns(row, 0);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int group =
          min(2 * step + i, kGroups - 1);  // d_out is 0 for positions that do not exist
      const uint4* unit =
          first + group / kRowGroups * 4 * kColumnFourRowsPitch + group % kRowGroups;
      units[i][0] = unit[0];
      units[i][1] = unit[1];
      d_out[i] = memory.d_out[step][i][lane];
    }
  }
};

// Sums for all taps of a channel. The first two tiles hold the half of the columns that this warp
// completes; the others are handed over.
struct TapSums {
  int sums[kTiles][kWholeBytes][kTileSums] = {};

  __device__ void Add(const StepWords& words, int half) {
    const int own_shift = 8 * half, other_shift = 8 - own_shift;  // see pixel_tiles.cuh
    const unsigned b[kWholeBytes][2] = {{words.d_out[0].x, words.d_out[0].y},
                                        {words.d_out[0].z, words.d_out[0].w},
                                        {words.d_out[1].x, words.d_out[1].y},
                                        {words.d_out[1].z, words.d_out[1].w}};
    unsigned a[kTiles][4];
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const uint4 &here = words.units[group][0], &behind = words.units[group][1];
      const unsigned low[4] = {here.x, here.y, here.z, here.w};
      const unsigned high[4] = {behind.x, behind.y, behind.z, behind.w};
#pragma unroll
      for (int column = 0; column < 4; ++column) {
        const int row = 2 * group + column % 2;
        a[column / 2][row] = __funnelshift_r(low[column], high[column], own_shift);
        a[2 + column / 2][row] = __funnelshift_r(low[column], high[column], other_shift);
      }
    }
#pragma unroll
    for (int byte = 0; byte < kWholeBytes; ++byte) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (byte + 1 < kWholeBytes) {
          AddByteMma(a[tile], b[byte], sums[tile][byte]);
        } else {
          AddSignedByteMma(a[tile], b[byte], sums[tile][byte]);
        }
      }
    }
  }

  // The i-th sum of a lane over two tiles, as a whole number.
  __device__ long long Whole(int first_tile, int i) const {
    const auto& bytes = sums[first_tile + i / kTileSums];
    const int at = i % kTileSums;
    return WholeFromBytes({bytes[0][at], bytes[1][at], bytes[2][at], bytes[3][at]});
  }
  __device__ long long Own(int i) const { return Whole(0, i); }
  __device__ long long HandedOver(int i) const { return Whole(kTiles / kHalves, i); }
};

// Loads the data of the next step while one step is multiplied.
__device__ inline void Multiply(const SharedMemory& memory, int channel, int half, int lane,
                                TapSums& sums) {
  constexpr int kFirstSteps = (kSteps + 1) / 2;
  const int end = half == 0 ? kFirstSteps : kSteps;
  int step = half == 0 ? 0 : kFirstSteps;
  StepWords words(memory, channel, step, lane);
#pragma unroll 1
  while (++step < end) {
    const StepWords next(memory, channel, step, lane);
    sums.Add(words, half);
    words = next;
  }
  sums.Add(words, half);
}

// A warp completes the columns of its own half with what the other warp handed over.
__device__ inline void StoreWeights(const SharedMemory& memory, const TapSums& sums, int channel,
                                    int half, int lane, float* parts) {
  const auto& other = memory.sums[(1 - half) * kChannels + channel];
  const int filter = 2 * MmaPlace(lane);
  const FixedPoint fixed[2] = {FixedPointOf(memory, filter), FixedPointOf(memory, filter + 1)};
#pragma unroll
  for (int i = 0; i < kHandedOver; i += 2) {
    const int tap = MmaGroup(lane) * kKernel + 4 * half + i / 2;
    const long long first = sums.Own(i) + other[i][lane];
    const long long second = sums.Own(i + 1) + other[i + 1][lane];
    *reinterpret_cast<float2*>(parts + (tap * kChannels + channel) * kFilters + filter) =
        make_float2(fixed[0].Value(first), fixed[1].Value(second));
  }
}

__device__ inline void StoreBias(const SharedMemory& memory, int filter, float* parts) {
  long long sum = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += memory.bias[warp][filter];
  parts[kWeights + filter] = FixedPointOf(memory, filter).Value(sum);
}

// Grid: images, groups of filters. At most 128 registers, because half a multiprocessor becomes
// free sooner than a whole one.
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    PixelWeightsKernel(const __grid_constant__ FirstLayerWeightGradient call) {
  extern __shared__ __align__(16) unsigned char bytes[];
  SharedMemory& memory = *reinterpret_cast<SharedMemory*>(bytes);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int channel = warp % kChannels, half = warp / kChannels;
  const int image = static_cast<int>(blockIdx.x);
  const int first_filter = static_cast<int>(blockIdx.y) * kBlockFilters;

  PixelColumnsFetch<kThreads> pixels(
      call.pixels + std::ptrdiff_t{1} * image * call.in.height * call.in.width * kChannels,
      call.in);
  pixels.Start();
  DOutShare d_out(call, image, first_filter, warp, lane);
  AwaitPredecessor();
  d_out.FetchFirst();
  pixels.Store(memory.pixels);
  const unsigned largest =
      OverPlaces(d_out.Largest(), [](unsigned x, unsigned y) { return max(x, y); });
  if (MmaPlace(lane) == 0) memory.largest[warp][MmaGroup(lane)] = largest;
  __syncthreads();

  TapSums sums;
  const FixedPoint fixed = FixedPointOf(memory, MmaGroup(lane));
  AddToBias(0, d_out.StoreFirst(fixed, memory), warp, lane, memory);
  for (int row = kColumnWindowRows;; row += kColumnWindowRows) {
    __syncthreads();
    Multiply(memory, channel, half, lane, sums);
    if (row >= call.out.height) break;
    __syncthreads();  // the previous chunk has been read
    pixels.Bring(row * kPixelStride, memory.pixels);
    const long long before = memory.bias[warp][MmaGroup(lane)];
    AddToBias(before, d_out.Bring(row, fixed, memory), warp, lane, memory);
  }

#pragma unroll
  for (int i = 0; i < kHandedOver; ++i) {
    memory.sums[warp][i][lane] = sums.HandedOver(i);
  }
  __syncthreads();
  float* parts = call.parts + std::ptrdiff_t{1} * image * kImageParts + first_filter;
  StoreWeights(memory, sums, channel, half, lane, parts);
  if (threadIdx.x < kBlockFilters) StoreBias(memory, static_cast<int>(threadIdx.x), parts);
}

constexpr int kSumThreads = 128;
constexpr int kSumBlocks = kWeights / kSumThreads + 1;
static_assert(kWeights % kSumThreads == 0 && kFilters <= kSumThreads);

// Adds up the images in order; a thread handles one entry of each part. The last block handles the
// bias.
__global__ void __launch_bounds__(kSumThreads)
    SumImagesKernel(const __grid_constant__ FirstLayerWeightGradient call) {
  __shared__ double scratch[kWarpSize];
  constexpr int kAtOnce = 32;
  const int at = static_cast<int>(blockIdx.x) * kSumThreads + static_cast<int>(threadIdx.x);
  float sum = 0;
  AwaitPredecessor();
  for (int first = 0; first < call.count; first += kAtOnce) {
    float parts[kAtOnce];  // all are loaded before the first is added
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::ptrdiff_t image = first + i;
      const bool there = image < call.count && at < kImageParts;
      parts[i] = there ? call.parts[image * kImageParts + at] : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sum += parts[i];
  }
  if (at < kWeights) {
    sum *= call.scale;
    call.d_w[at] = sum;
  } else if (at < kImageParts) {
    call.d_bias[at - kWeights] = sum;
  }
  const double squares = BlockSum(static_cast<double>(sum) * static_cast<double>(sum), scratch);
  if (threadIdx.x == 0) call.squares[blockIdx.x] = squares;
}

}  // namespace

bool SupportsFirstLayerWeightGradient(const ImageShape& out) {
  return out.width <= kColumnPositions && out.height <= kMostPositions / out.width;
}

std::size_t FirstLayerWeightGradientParts(int count) {
  return std::size_t{1} * count * kImageParts;
}

int FirstLayerWeightGradientSquares() { return kSumBlocks; }

void LaunchFirstLayerWeightGradient(const FirstLayerWeightGradient& call, cudaStream_t stream) {
  UPER_CHECK(SupportsFirstLayerWeightGradient(call.out),
             "a row must be short and sums must fit 32 bits");
  // When the previous kernel ends, several blocks would start on the multiprocessors that are free
  // first. So each block requests enough memory to have a multiprocessor for itself. This is done
  // only if there are enough multiprocessors for all blocks, as on an H100.
  constexpr std::size_t kMoreThanHalf = 116 * 1024;
  constexpr int kMultiprocessors = 132;
  constexpr int kFilterGroups = kFilters / kBlockFilters;
  std::size_t bytes = sizeof(SharedMemory);
  if (call.count * kFilterGroups <= kMultiprocessors) bytes = std::max(bytes, kMoreThanHalf);
  LaunchKernel("weight gradient of the first convolution", PixelWeightsKernel,
               {.grid = dim3(call.count, kFilterGroups),
                .block = kThreads,
                .shared_bytes = bytes,
                .stream = stream,
                .order = call.order},
               call);
  LaunchKernel("sum over images", SumImagesKernel,
               {.grid = kSumBlocks,
                .block = kSumThreads,
                .stream = stream,
                .order = LaunchOrder::kOverlapPrevious},
               call);
}

}  // namespace uper::cuda
