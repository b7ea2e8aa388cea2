#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/pixel_share.cuh"
#include "uper/nn/cuda/pixel_weights.h"
#include "uper/nn/cuda/reductions.cuh"
#include "uper/nn/cuda/widen.cuh"

namespace uper {
namespace {

constexpr int kFilters = kPixelFilters;
constexpr int kKernel = kPixelKernel;
constexpr int kStride = kPixelStride;
constexpr int kChannels = kPixelChannels;
constexpr int kWeights = kKernel * kKernel * kChannels * kFilters;
// What one picture adds: to the weights, as they lie in memory, and by [channel][filter] to the
// bias, of which the block of every channel adds up a share.
constexpr int kPictureParts = kWeights + kChannels * kFilters;

// A block has one channel of one picture: 64 taps x 32 filters. Its warps share out the positions,
// kSegment neighbours of a row at a time, and each has sums of all taps and filters: a lane those
// of one row of the kernel and 8 filters. From one position to the next it needs 4 new pixels, as
// the window moves by half its width.
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kSegment = 10;
constexpr int kRowPositions = kSharePositions / 2;  // at most
constexpr int kSums = kKernel * kKernel * kFilters;
// A warp's share of memory: segments of d_out [position][filter] on their way, later its sums.
constexpr int kStages = 5;  // all that a warp has of 20 rows of 20 positions
constexpr int kSegmentFloats = kSegment * kFilters;
static_assert(kStages * kSegmentFloats <= kSums);
// Pixels that the last positions of an incomplete segment may read behind the last row.
constexpr int kBeyond = kSegment * kStride;

// Pixels of a plane that matter.
__host__ __device__ int PlanePixels(const PictureShape& in, const PictureShape& out) {
  return ((out.height - 1) * kStride + kKernel) * in.width;
}

// Shared memory: of each warp its share, of each its part of the bias, and the pixels.
std::size_t SharedBytes(const PictureShape& in, const PictureShape& out) {
  return sizeof(float) * (kWarps * (kSums + kFilters) + PlanePixels(in, out) + kBeyond);
}

__device__ inline float* NextStage(float* first, float* stage) {
  return stage == first + (kStages - 1) * kSegmentFloats ? first : stage + kSegmentFloats;
}

__device__ inline float4 Four(const float* from) { return *reinterpret_cast<const float4*>(from); }

// Brings a plane's pixels to shared memory as floats, and 0 for those beyond it. The first ones are
// on their way before Store().
class PixelFetch {
 public:
  __device__ PixelFetch(const PixelWeights& call, int picture, int channel)
      : words_(PlanePixels(call.in, call.out) / 4) {
    const std::ptrdiff_t plane = std::ptrdiff_t{1} * picture * kChannels + channel;
    from_ = reinterpret_cast<const unsigned*>(call.pixels + plane * call.in.height * call.in.width);
    Fetch();
  }

  __device__ void Store(float* pixels) {
    const int all = words_ + kBeyond / 4;
    while (true) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int word = first_ + i * kThreads;
        if (word < all) reinterpret_cast<float4*>(pixels)[word] = Widen(fours_[i], 1);
      }
      first_ += kAtOnce * kThreads;
      if (first_ >= all) return;
      Fetch();
    }
  }

 private:
  static constexpr int kAtOnce = 2048 / kThreads;  // a plane of 84 x 84 is 1,764 words

  __device__ void Fetch() {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int word = first_ + i * kThreads;
      fours_[i] = word < words_ ? __ldg(from_ + word) : 0;
    }
  }

  const unsigned* from_;
  int words_;
  int first_ = static_cast<int>(threadIdx.x);
  unsigned fours_[kAtOnce];
};

// The positions of a warp: the same segment of some rows of outputs.
struct WarpPositions {
  int row, row_step, rows;
  int column;  // the first

  __device__ WarpPositions(const PictureShape& out, int warp) {
    static_assert(kRowPositions <= 2 * kSegment);
    const bool two = out.width > kSegment;  // segments in a row
    row = two ? warp / 2 : warp;
    row_step = two ? kWarps / 2 : kWarps;
    rows = out.height;
    column = two ? warp % 2 * kSegment : 0;
  }
};

// Brings the d_out of a warp's positions to its own memory, some segments ahead. A lane has every
// 32nd group of four floats.
class SegmentFetch {
 public:
  __device__ SegmentFetch(const PixelWeights& call, const WarpPositions& positions, int picture,
                          int lane, float* memory)
      : row_(positions.row),
        row_step_(positions.row_step),
        rows_(positions.rows),
        step_(positions.row_step * call.out.width * kFilters),
        fours_left_((call.out.width - positions.column) * kFilters / 4 - lane),
        memory_(memory + 4 * lane),
        stage_(memory_) {
    const std::ptrdiff_t row = std::ptrdiff_t{1} * picture * call.out.height + row_;
    from_ = call.d_out + (row * call.out.width + positions.column) * kFilters + 4 * lane;
  }

  // Positions beyond the row count as 0, in all stages.
  __device__ void FillBeyond() const {
    for (int stage = 0; stage < kStages; ++stage) {
      ForFours([&](int four) {
        if (four < fours_left_) return;
        *reinterpret_cast<float4*>(memory_ + stage * kSegmentFloats + 4 * four) =
            make_float4(0, 0, 0, 0);
      });
    }
  }

  // Starts the next segment, if there is one more.
  __device__ void Start() {
    if (row_ < rows_) {
      ForFours([&](int four) {
        if (four >= fours_left_) return;
        __pipeline_memcpy_async(stage_ + 4 * four, from_ + 4 * four, sizeof(float4));
      });
    }
    __pipeline_commit();
    row_ += row_step_;
    from_ += step_;
    stage_ = NextStage(memory_, stage_);
  }

 private:
  template <typename Do>
  __device__ static void ForFours(const Do& what) {
    constexpr int kFours = kSegmentFloats / 4;
#pragma unroll
    for (int four = 0; four < kFours; four += kWarpSize) {
      const bool whole = four + kWarpSize <= kFours;
      if (whole || static_cast<int>(threadIdx.x) % kWarpSize < kFours - four) what(four);
    }
  }

  int row_, row_step_, rows_, step_;  // of the next one
  int fours_left_;                    // from the lane's first one to the end of the row
  float* memory_;
  float* stage_;
  const float* from_;
};

struct LaneSums {
  float sums[kKernel][8] = {};  // [column of the kernel][filter: see LaneFilter()]

  // Four pixels of the window.
  __device__ void AddFour(int column, const float4& pixels, const float4& low, const float4& high) {
    AddEight(pixels.x, low, high, sums[column]);
    AddEight(pixels.y, low, high, sums[column + 1]);
    AddEight(pixels.z, low, high, sums[column + 2]);
    AddEight(pixels.w, low, high, sums[column + 3]);
  }
};

// A lane has row LaneM() of the kernel. Its filters: four from here and four from 16 further.
__device__ inline int LaneFilter(int lane) { return 4 * LaneN(lane); }

// `pixels`: where the lane's row of the first window begins. `d_out`: [position][filter].
__device__ inline void AddSegment(const float* pixels, const float* d_out, int lane,
                                  LaneSums& sums) {
  d_out += LaneFilter(lane);
  float4 left = Four(pixels);
#pragma unroll
  for (int i = 0; i < kSegment; ++i) {
    const float4 right = Four(pixels + (i + 1) * kStride);
    const float4 low = Four(d_out + i * kFilters);
    const float4 high = Four(d_out + i * kFilters + kFilters / 2);
    sums.AddFour(0, left, low, high);
    sums.AddFour(kKernel / 2, right, low, high);
    left = right;
  }
}

// A warp's sums lie in fours, [column of the kernel, half of the filters][lane].
__device__ inline void StoreSums(const LaneSums& result, int lane, float* memory) {
#pragma unroll
  for (int column = 0; column < kKernel; ++column) {
    const float(&eight)[8] = result.sums[column];
    auto* to = reinterpret_cast<float4*>(memory) + 2 * column * kWarpSize + lane;
    to[0] = make_float4(eight[0], eight[1], eight[2], eight[3]);
    to[kWarpSize] = make_float4(eight[4], eight[5], eight[6], eight[7]);
  }
}

// Where four of them belong in the weights.
__device__ inline int WeightOfFour(int four, int channel) {
  const int lane = four % kWarpSize;
  const int column = four / kWarpSize / 2;
  const int filter = four / kWarpSize % 2 * (kFilters / 2) + LaneFilter(lane);
  return ((LaneM(lane) * kKernel + column) * kChannels + channel) * kFilters + filter;
}

// Adds up the warps in order. `sums` [warp][kSums], `bias` [warp][filter].
__device__ inline void StoreParts(const float* sums, const float* bias, int channel, float* parts) {
#pragma unroll
  for (int first = 0; first < kSums / 4; first += kThreads) {
    const int four = first + static_cast<int>(threadIdx.x);
    float4 sum = Four(sums + 4 * four);
#pragma unroll
    for (int w = 1; w < kWarps; ++w) {
      const float4 one = Four(sums + w * kSums + 4 * four);
      sum = make_float4(sum.x + one.x, sum.y + one.y, sum.z + one.z, sum.w + one.w);
    }
    *reinterpret_cast<float4*>(parts + WeightOfFour(four, channel)) = sum;
  }
  if (threadIdx.x >= kFilters) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += bias[w * kFilters + threadIdx.x];
  parts[kWeights + channel * kFilters + threadIdx.x] = sum;
}

// Grid: pictures, channels. At most 128 registers: half a multiprocessor's are free sooner than
// all.
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    PixelWeightsKernel(const __grid_constant__ PixelWeights call) {
  extern __shared__ __align__(16) float memory[];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int picture = static_cast<int>(blockIdx.x);
  const int channel = static_cast<int>(blockIdx.y);
  float* sums = memory;
  float* own = sums + warp * kSums;
  float* bias = sums + kWarps * kSums;
  float* pixels = bias + kWarps * kFilters;

  PixelFetch pixel_fetch(call, picture, channel);
  const WarpPositions positions(call.out, warp);
  SegmentFetch segments(call, positions, picture, lane, own);
  segments.FillBeyond();
  AwaitPredecessor();
#pragma unroll 1
  for (int i = 0; i < kStages; ++i) segments.Start();
  pixel_fetch.Store(pixels);
  __syncthreads();

  LaneSums result;
  float bias_sum = 0;
  int bias_channel = warp;
  float* stage = own;
  const float* window =
      pixels + (positions.row * kStride + LaneM(lane)) * call.in.width + positions.column * kStride;
  const int window_step = positions.row_step * kStride * call.in.width;
  for (int row = positions.row; row < positions.rows; row += positions.row_step) {
    __pipeline_wait_prior(kStages - 1);
    __syncwarp();
    AddSegment(window, stage, lane, result);
    if (bias_channel++ % kChannels == channel) {  // all blocks of a picture have equal shares
#pragma unroll
      for (int i = 0; i < kSegment; ++i) bias_sum += stage[i * kFilters + lane];
    }
    __syncwarp();  // the segment has been read
    segments.Start();
    stage = NextStage(own, stage);
    window += window_step;
  }
  StoreSums(result, lane, own);
  bias[warp * kFilters + lane] = bias_sum;
  __syncthreads();
  StoreParts(sums, bias, channel, call.parts + std::ptrdiff_t{1} * picture * kPictureParts);
}

constexpr int kSumThreads = kChannels * kFilters;
constexpr int kSumBlocks = kPictureParts / kSumThreads;
static_assert(kWeights % kSumThreads == 0);

// Adds up the pictures in order, a thread one part of each; the last block has the bias.
__global__ void __launch_bounds__(kSumThreads)
    SumPicturesKernel(const __grid_constant__ PixelWeights call) {
  __shared__ float channels[kSumThreads];
  __shared__ double scratch[kWarpSize];
  constexpr int kAtOnce = 32;
  const int at = static_cast<int>(blockIdx.x) * kSumThreads + static_cast<int>(threadIdx.x);
  float sum = 0;
  AwaitPredecessor();
  for (int first = 0; first < call.count; first += kAtOnce) {
    float parts[kAtOnce];  // all on their way before the first is added
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::ptrdiff_t picture = first + i;
      parts[i] = picture < call.count ? call.parts[picture * kPictureParts + at] : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sum += parts[i];
  }
  if (at < kWeights) {
    sum *= call.scale;
    call.d_w[at] = sum;
  } else {
    channels[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    if (threadIdx.x < kFilters) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) sum += channels[c * kFilters + threadIdx.x];
      call.d_bias[threadIdx.x] = sum;
    }
  }
  const double squares = BlockSum(static_cast<double>(sum) * static_cast<double>(sum), scratch);
  if (threadIdx.x == 0) call.squares[blockIdx.x] = squares;
}

}  // namespace

bool SuitsPixelWeights(const PictureShape& in, const PictureShape& out) {
  constexpr std::size_t kMostBytes = 227 * 1024;  // that a block can have
  return out.width <= kRowPositions && SharedBytes(in, out) <= kMostBytes;
}

std::size_t PixelWeightParts(int count) { return std::size_t{1} * count * kPictureParts; }

int PixelWeightSquares() { return kSumBlocks; }

void LaunchPixelWeights(const PixelWeights& call, cudaStream_t stream) {
  UPER_CHECK(SuitsPixelWeights(call.in, call.out), "the picture must fit a block's memory");
  // When the kernel before ends, blocks must not crowd on the multiprocessors that are free first:
  // with so much memory they are one each. Only if there are enough for all, as on an H100.
  constexpr std::size_t kMoreThanHalf = 116 * 1024;
  constexpr int kMultiprocessors = 132;
  std::size_t bytes = SharedBytes(call.in, call.out);
  if (call.count * kChannels <= kMultiprocessors) bytes = std::max(bytes, kMoreThanHalf);
  LaunchKernel("weights of the first convolution", PixelWeightsKernel,
               {.grid = dim3(call.count, kChannels),
                .block = kThreads,
                .shared_bytes = bytes,
                .stream = stream,
                .follow = call.follow},
               call);
  LaunchKernel(
      "sum over pictures", SumPicturesKernel,
      {.grid = kSumBlocks, .block = kSumThreads, .stream = stream, .follow = Follow::kOverlap},
      call);
}

}  // namespace uper
