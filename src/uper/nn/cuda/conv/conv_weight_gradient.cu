#include <cuda_pipeline_primitives.h>

#include <vector>

#include "uper/base/check.h"
#include "uper/nn/cuda/conv/conv_gradient_reduce.h"
#include "uper/nn/cuda/conv/conv_weight_gradient.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/ptx/warp_tile.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kLaneFilters = 4;
constexpr int kWarpFilters = kLanesN * kLaneFilters;
static_assert(kWarpFilters == kPartFilters);

// How a convolution is split. A lane computes kTapRows rows of the kernel, all columns, some
// channels and four filters. A warp has kLanesM x kLanesN such tiles; a block has kWarpsM x kWarpsN
// warps. From one position to the next, a lane loads only the columns that enter the window. It
// handles kSegment neighboring positions of a row at a time.
template <int kKernel_, int kStride_, int kTapRows_, int kLaneChannels_, int kWarpsM_, int kWarpsN_,
          int kSegment_>
struct Sharing {
  static constexpr int kKernel = kKernel_;
  static constexpr int kStride = kStride_;
  static constexpr int kTapRows = kTapRows_;
  static constexpr int kLaneChannels = kLaneChannels_;
  static constexpr int kWarpsN = kWarpsN_;
  static constexpr int kSegment = kSegment_;
  static_assert(kWarpsM_ * kWarpsN == kWarps);
  static_assert(kTapRows == 1 || kTapRows == kKernel);

  static constexpr int kTapGroups = kKernel / kTapRows;
  static constexpr int kWarpChannels = kLanesM * kLaneChannels;
  static constexpr int kBlockChannels = kWarpsM_ * kWarpChannels;
  static constexpr int kBlockFilters = kWarpsN * kWarpFilters;
  // Threads that add up the bias of one filter.
  static constexpr int kBiasThreads = kThreads / kBlockFilters;

  // A block with one row of the kernel needs only the rows of the image that this row meets.
  static constexpr int kRowsApart = kTapRows == 1 ? kStride : 1;  // in the image
  static constexpr int kWindowsApart = kTapRows == 1 ? 1 : kStride;
  __host__ __device__ static int Segments(const ImageShape& out) {
    return (out.width + kSegment - 1) / kSegment;
  }
  // Shared memory: images [row][column][channel], then d_out [row][column][filter]. Rows of d_out
  // are padded to whole segments.
  __host__ __device__ static int Rows(int windows) {
    return (windows - 1) * kWindowsApart + kTapRows;
  }
  __host__ __device__ static int Columns(const ImageShape& out) {
    return (Segments(out) * kSegment - 1) * kStride + kKernel;
  }
  __host__ __device__ static int ImageFloats(const ImageShape& out) {
    return Rows(out.height) * Columns(out) * kBlockChannels;
  }
  static std::size_t SharedBytes(const ImageShape& out) {
    return sizeof(float) *
           (ImageFloats(out) + out.height * Segments(out) * kSegment * kBlockFilters);
  }
  // Blocks that compute the same filters of an image.
  __host__ __device__ static int Shares(int channels) {
    return (channels + kBlockChannels - 1) / kBlockChannels * kTapGroups;
  }
};

// The second and third convolution of the Atari network have such kernels and widths.
using FourByFour = Sharing<4, 2, 1, 4, 1, 4, 9>;
using ThreeByThree = Sharing<3, 1, 3, 2, 2, 2, 7>;

// A part holds the sums over a group of images.
int ImagesOfPart(int count) { return (count + kMaxParts - 1) / kMaxParts; }
int PartCount(int count) { return (count + ImagesOfPart(count) - 1) / ImagesOfPart(count); }

// A part: the weights, in the order of memory, and partial sums of the bias [row][filter].
__host__ __device__ int WeightCount(const ConvWeightGradient& call) {
  return call.spec.kernel * call.spec.kernel * call.in.channels * call.out.channels;
}
template <typename S>
__host__ __device__ int BiasRows(const ConvWeightGradient& call) {
  return S::Shares(call.in.channels) * S::kBiasThreads;
}
template <typename S>
__host__ __device__ int PartFloats(const ConvWeightGradient& call) {
  return WeightCount(call) + BiasRows<S>(call) * call.out.channels;
}

__device__ inline float4 FourAt(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

// Copies rows `begin` to `end`, of `columns` columns of kFloats floats, to shared memory, where
// rows have `pitch` columns. Only `floats` floats of a column exist.
struct RowCopy {
  int begin, end;
  int columns, pitch, floats;
  int row_step, column_step;  // in `from`
};
template <int kFloats>
__device__ inline void StartCopy(const RowCopy& copy, const float* from, float* to) {
  constexpr int kFours = kFloats / 4;
  constexpr int kColumns = kWarpSize / kFours;  // that a warp copies at once
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int first = lane / kFours;
  const int at = lane % kFours * 4;
  if (at >= copy.floats) return;
  for (int row = copy.begin + warp; row < copy.end; row += kWarps) {
    const float* source = from + row * copy.row_step + first * copy.column_step + at;
    float* place = to + (row * copy.pitch + first) * kFloats + at;
#pragma unroll 4
    for (int column = first; column < copy.columns; column += kColumns) {
      __pipeline_memcpy_async(place, source, sizeof(float4));
      source += kColumns * copy.column_step;
      place += kColumns * kFloats;
    }
  }
}

// The work of a block and of a lane.
template <typename S>
struct Work {
  int tap_row, channel, filter, share;  // the first ones of the block
  int lane_channel, lane_filter;        // the first ones, relative to the block
  bool has_lane;                        // whether the lane has existing channels and filters

  __device__ explicit Work(const ConvWeightGradient& call) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    share = static_cast<int>(blockIdx.y);
    tap_row = share % S::kTapGroups;
    channel = share / S::kTapGroups * S::kBlockChannels;
    filter = static_cast<int>(blockIdx.x) * S::kBlockFilters;
    const int warp_channel = warp / S::kWarpsN * S::kWarpChannels;
    const int warp_filter = warp % S::kWarpsN * kWarpFilters;
    lane_channel = warp_channel + LaneM(lane) * S::kLaneChannels;
    lane_filter = warp_filter + LaneN(lane) * kLaneFilters;
    has_lane =
        channel + warp_channel < call.in.channels && filter + warp_filter < call.out.channels;
  }
};

// Starts to load the rows that the windows from row `begin` to `end` need and earlier windows did
// not.
template <typename S>
__device__ inline void StartRows(const ConvWeightGradient& call, const Work<S>& work, int image,
                                 int begin, int end, float* memory) {
  const ImageShape& in = call.in;
  const ImageShape& out = call.out;
  const float* x = call.x + std::ptrdiff_t{1} * image * in.height * in.width * in.channels +
                   work.tap_row * in.width * in.channels + work.channel;
  StartCopy<S::kBlockChannels>({.begin = begin == 0 ? 0 : S::Rows(begin),
                                .end = S::Rows(end),
                                .columns = min(in.width, S::Columns(out)),
                                .pitch = S::Columns(out),
                                .floats = in.channels - work.channel,
                                .row_step = S::kRowsApart * in.width * in.channels,
                                .column_step = in.channels},
                               x, memory);
  const float* d = call.d_out + std::ptrdiff_t{1} * image * call.d_image + work.filter;
  StartCopy<S::kBlockFilters>({.begin = begin,
                               .end = end,
                               .columns = out.width,
                               .pitch = S::Segments(out) * S::kSegment,
                               .floats = out.channels - work.filter,
                               .row_step = call.d_row,
                               .column_step = out.channels},
                              d, memory + S::ImageFloats(out));
}

// Columns outside the image count as 0.
template <typename S>
__device__ inline void FillBeyond(const ConvWeightGradient& call, float* memory) {
  const int columns = S::Segments(call.out) * S::kSegment;
  if (columns == call.out.width) return;
  const int floats = S::ImageFloats(call.out) + call.out.height * columns * S::kBlockFilters;
  for (int i = static_cast<int>(threadIdx.x); i < floats; i += kThreads) memory[i] = 0;
  __syncthreads();
}

// Where a lane's window and derivatives of a segment begin.
template <typename S>
class SegmentWalk {
 public:
  const float* x;
  const float* d;

  __device__ SegmentWalk(const ImageShape& out, const Work<S>& work, int row, const float* memory)
      : segments_(S::Segments(out)) {
    const int row_floats = S::Columns(out) * S::kBlockChannels;
    x = memory + row * S::kWindowsApart * row_floats + work.lane_channel;
    d = memory + S::ImageFloats(out) + row * segments_ * S::kSegment * S::kBlockFilters +
        work.lane_filter;
    row_end_step_ = S::kWindowsApart * row_floats - (segments_ - 1) * kStep;
  }
  __device__ void Next() {
    d += S::kSegment * S::kBlockFilters;
    const bool row_ends = ++segment_ == segments_;
    if (row_ends) segment_ = 0;
    x += row_ends ? row_end_step_ : kStep;
  }

 private:
  static constexpr int kStep = S::kSegment * S::kStride * S::kBlockChannels;

  int segments_, segment_ = 0;
  int row_end_step_;
};

// The inputs and derivatives that a lane needs for one position.
template <typename S>
struct Place {
  float window[S::kTapRows][S::kKernel][S::kLaneChannels];
  float d[kLaneFilters];

  // Loads columns from kFirst on; the first lies at `x`.
  template <int kFirst>
  __device__ void LoadColumns(const float* x, int row_floats) {
#pragma unroll
    for (int i = 0; i < S::kTapRows; ++i) {
#pragma unroll
      for (int j = kFirst; j < S::kKernel; ++j) {
        const float* from = x + i * row_floats + (j - kFirst) * S::kBlockChannels;
        float(&to)[S::kLaneChannels] = window[i][j];
        if constexpr (S::kLaneChannels == 4) {
          const float4 four = FourAt(from);
          to[0] = four.x;
          to[1] = four.y;
          to[2] = four.z;
          to[3] = four.w;
        } else {
          static_assert(S::kLaneChannels == 2);
          const float2 two = *reinterpret_cast<const float2*>(from);
          to[0] = two.x;
          to[1] = two.y;
        }
      }
    }
  }
  __device__ void LoadDerivatives(const float* from) {
    const float4 four = FourAt(from);
    d[0] = four.x;
    d[1] = four.y;
    d[2] = four.z;
    d[3] = four.w;
  }
  __device__ void KeepColumns(const Place& before) {
#pragma unroll
    for (int i = 0; i < S::kTapRows; ++i) {
#pragma unroll
      for (int j = 0; j + S::kStride < S::kKernel; ++j) {
#pragma unroll
        for (int c = 0; c < S::kLaneChannels; ++c) {
          window[i][j][c] = before.window[i][j + S::kStride][c];
        }
      }
    }
  }
};

template <typename S>
struct LaneSums {
  float sums[S::kTapRows][S::kKernel][S::kLaneChannels][kLaneFilters] = {};

  __device__ void Add(const Place<S>& place) {
#pragma unroll
    for (int i = 0; i < S::kTapRows; ++i) {
#pragma unroll
      for (int j = 0; j < S::kKernel; ++j) {
#pragma unroll
        for (int c = 0; c < S::kLaneChannels; ++c) {
#pragma unroll
          for (int f = 0; f < kLaneFilters; ++f) {
            sums[i][j][c][f] = fmaf(place.window[i][j][c], place.d[f], sums[i][j][c][f]);
          }
        }
      }
    }
  }

  // `weights`: of a part.
  __device__ void Store(const ConvWeightGradient& call, const Work<S>& work, float* weights) const {
    const int channels = call.in.channels;
    const int filters = call.out.channels;
    float* to = weights + work.filter + work.lane_filter +
                std::ptrdiff_t{1} * filters *
                    (work.tap_row * S::kKernel * channels + work.channel + work.lane_channel);
#pragma unroll
    for (int i = 0; i < S::kTapRows; ++i) {
#pragma unroll
      for (int j = 0; j < S::kKernel; ++j) {
#pragma unroll
        for (int c = 0; c < S::kLaneChannels; ++c) {
          const float(&four)[kLaneFilters] = sums[i][j][c];
          *reinterpret_cast<float4*>(to + ((i * S::kKernel + j) * channels + c) * filters) =
              make_float4(four[0], four[1], four[2], four[3]);
        }
      }
    }
  }
};

// `place` is the first position of the segment and becomes that of the next segment. The data of
// the next position are always being loaded.
template <typename S>
__device__ inline void AddSegment(const SegmentWalk<S>& at, const SegmentWalk<S>& behind,
                                  int row_floats, Place<S>& place, LaneSums<S>& sums) {
#pragma unroll
  for (int i = 0; i < S::kSegment; ++i) {
    Place<S> next;
    if (i + 1 < S::kSegment) {
      constexpr int kKept = S::kKernel - S::kStride;
      next.KeepColumns(place);
      next.template LoadColumns<kKept>(at.x + (i * S::kStride + S::kKernel) * S::kBlockChannels,
                                       row_floats);
      next.LoadDerivatives(at.d + (i + 1) * S::kBlockFilters);
    } else {
      next.template LoadColumns<0>(behind.x, row_floats);
      next.LoadDerivatives(behind.d);
    }
    sums.Add(place);
    place = next;
  }
}

// Handles the positions of rows `begin` to `end`, which are in shared memory.
template <typename S>
__device__ inline void AddRows(const ConvWeightGradient& call, const Work<S>& work, int begin,
                               int end, const float* memory, LaneSums<S>& sums) {
  const int row_floats = S::Columns(call.out) * S::kBlockChannels;
  SegmentWalk<S> at(call.out, work, begin, memory);
  Place<S> place;
  place.template LoadColumns<0>(at.x, row_floats);
  place.LoadDerivatives(at.d);
#pragma unroll 1
  for (int left = (end - begin) * S::Segments(call.out); left > 0; --left) {
    SegmentWalk<S> behind = at;
    if (left > 1) behind.Next();
    AddSegment(at, behind, row_floats, place, sums);
    at = behind;
  }
}

// A thread's part of a filter's bias. Blocks with the same filters split the rows; threads of a
// block split the columns.
template <typename S>
__device__ inline float BiasShare(const ConvWeightGradient& call, const Work<S>& work,
                                  const float* memory) {
  const int filter = static_cast<int>(threadIdx.x) % S::kBlockFilters;
  const int first = static_cast<int>(threadIdx.x) / S::kBlockFilters;
  const int columns = S::Segments(call.out) * S::kSegment;
  const float* d = memory + S::ImageFloats(call.out) + filter;
  float sum = 0;
  for (int y = work.share; y < call.out.height; y += S::Shares(call.in.channels)) {
#pragma unroll 5
    for (int x = first; x < columns; x += S::kBiasThreads) {
      sum += d[(y * columns + x) * S::kBlockFilters];
    }
  }
  return sum;
}

template <typename S>
__device__ inline void StoreBias(const ConvWeightGradient& call, const Work<S>& work, float sum,
                                 float* rows) {
  const int filter = work.filter + static_cast<int>(threadIdx.x) % S::kBlockFilters;
  const int row = work.share * S::kBiasThreads + static_cast<int>(threadIdx.x) / S::kBlockFilters;
  if (filter < call.out.channels) rows[row * call.out.channels + filter] = sum;
}

// Grid: groups of filters, groups of kernel rows and channels, parts. Few registers and little
// memory, so that kernels on the critical path can run at the same time.
template <typename S>
__global__ void __launch_bounds__(kThreads, 512 / kThreads)
    ConvWeightGradientKernel(const __grid_constant__ ConvWeightGradient call, int images_of_part) {
  extern __shared__ __align__(16) float memory[];
  const Work<S> work(call);
  const int part = static_cast<int>(blockIdx.z);
  const int first = part * images_of_part;
  const int last = min(first + images_of_part, call.count);
  const int begun = (call.out.height + 2) / 3;  // rows that must be loaded before the work begins
  LaneSums<S> sums;
  float bias = 0;
  FillBeyond<S>(call, memory);
  AwaitPredecessor();
#pragma unroll 1
  for (int image = first; image < last; ++image) {
    if (image > first) __syncthreads();  // the previous image has been read
    StartRows(call, work, image, 0, begun, memory);
    __pipeline_commit();
    if (begun < call.out.height) {
      StartRows(call, work, image, begun, call.out.height, memory);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
#pragma unroll 1
    for (int row = 0; row < call.out.height; row = row == 0 ? begun : call.out.height) {
      if (row > 0) __pipeline_wait_prior(0);
      __syncthreads();
      if (!work.has_lane) continue;
      AddRows(call, work, row, row == 0 ? begun : call.out.height, memory, sums);
    }
    bias += BiasShare(call, work, memory);
  }
  float* parts = call.parts + std::ptrdiff_t{1} * part * PartFloats<S>(call);
  if (work.has_lane) sums.Store(call, work, parts);
  StoreBias(call, work, bias, parts + WeightCount(call));
}

// Calls visit(Sharing) with the layer's split, if there is one.
template <typename Result, typename Visit>
Result WithSharing(const ConvolutionSpec& spec, Result otherwise, const Visit& visit) {
  if (spec.kernel == 4 && spec.stride == 2) return visit(FourByFour());
  if (spec.kernel == 3 && spec.stride == 1) return visit(ThreeByThree());
  return otherwise;
}

int PartFloatsOf(const ConvWeightGradient& call) {
  return WithSharing(call.spec, 0, [&](auto s) { return PartFloats<decltype(s)>(call); });
}

template <typename S>
void Launch(const ConvWeightGradient& call, cudaStream_t stream) {
  const int filter_groups = (call.out.channels + S::kBlockFilters - 1) / S::kBlockFilters;
  LaunchKernel("weight gradient of a convolution", ConvWeightGradientKernel<S>,
               {.grid = dim3(filter_groups, S::Shares(call.in.channels), PartCount(call.count)),
                .block = kThreads,
                .shared_bytes = S::SharedBytes(call.out),
                .stream = stream},
               call, ImagesOfPart(call.count));
}

}  // namespace

bool SupportsConvWeightGradient(const ImageShape& in, const ImageShape& out,
                                const ConvolutionSpec& spec) {
  constexpr std::size_t kMostBytes = 227 * 1024;  // limit per block
  return WithSharing(spec, false, [&](auto s) {
    return in.channels % s.kWarpChannels == 0 && out.channels % kWarpFilters == 0 &&
           s.SharedBytes(out) <= kMostBytes;
  });
}

std::size_t ConvWeightGradientParts(const ConvWeightGradient& call) {
  return std::size_t{1} * PartCount(call.count) * PartFloatsOf(call);
}

int ConvWeightGradientSquares(const ConvWeightGradient& call) {
  return GradientReductionBlocks(WeightCount(call), call.out.channels);
}

void LaunchConvWeightGradient(const ConvWeightGradient& call, cudaStream_t stream) {
  UPER_CHECK(SupportsConvWeightGradient(call.in, call.out, call.spec),
             "there is no kernel for this convolution");
  WithSharing(call.spec, 0, [&](auto s) {
    Launch<decltype(s)>(call, stream);
    return 0;
  });
}

void LaunchConvGradientReduce(std::span<const ConvWeightGradient> calls, cudaStream_t stream,
                              LaunchOrder order) {
  std::vector<GradientReduction> layers;
  for (const ConvWeightGradient& call : calls) {
    const int floats = PartFloatsOf(call);
    layers.push_back({.parts = call.parts,
                      .count = PartCount(call.count),
                      .floats = floats,
                      .weights = WeightCount(call),
                      .filters = call.out.channels,
                      .bias_rows = (floats - WeightCount(call)) / call.out.channels,
                      .d_w = call.d_w,
                      .d_bias = call.d_bias,
                      .squares = call.squares});
  }
  LaunchGradientReductions(layers, stream, order);
}

}  // namespace uper::cuda
