#include "uper/base/check.h"
#include "uper/nn/cuda/gemm/dense_input_gradient.h"
#include "uper/nn/cuda/ptx/bulk_copy.cuh"
#include "uper/nn/cuda/ptx/double_mma.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;  // they split the units
constexpr int kThreads = kWarps * kWarp;
constexpr int kSamples = 32;
// Inputs per block: the 3,136 inputs of the Atari network give 131 blocks.
constexpr int kInputs = 24;
constexpr int kUnitsStep = 8 * kWarps;
constexpr int kResults = kSamples * kInputs / kThreads;  // per thread
static_assert(kResults * kThreads == kSamples * kInputs);

// Pitch of rows in shared memory, in floats. Lanes read two floats each of 8 units in 4 rows: these
// lie in different banks.
__host__ __device__ int PitchOf(int units) { return units + 8; }

// The sums of the warps, [warp][sample][input], take the place of the operands.
constexpr int kSumsPitch = kInputs + 4;
constexpr int kWarpSums = kSamples * kSumsPitch;

constexpr std::size_t BytesOf(int units) {
  const std::size_t operands = std::size_t{1} * (kInputs + kSamples) * (units + 8);
  const std::size_t sums = std::size_t{1} * kWarps * kWarpSums;
  return sizeof(float) * (operands > sums ? operands : sums);
}

// Loads rows [row][unit]; called by one warp.
__device__ void StartRows(const float* from, int units, int rows, float* to,
                          const ArrivalBarrier& barrier) {
  const unsigned bytes = static_cast<unsigned>(sizeof(float)) * units;
  const std::uint64_t policy = CachePolicy(CacheHint::kNormal);
  for (int row = static_cast<int>(threadIdx.x) % kWarp; row < rows; row += kWarp) {
    StartLoad(to + row * PitchOf(units), from + static_cast<std::ptrdiff_t>(row) * units, bytes,
              policy, barrier);
  }
}

// Adds the products of the warp's units to `sums`; samples are rows, see AddDoubleMma(). Data of
// missing samples and inputs are undefined; they only reach missing results.
__device__ void Multiply(const float* samples, const float* weights, int units,
                         double (&sums)[kSamples / 16][kInputs / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int pitch = PitchOf(units);
  const int at = MmaGroup(lane) * pitch + units / kWarps * warp + 2 * MmaPlace(lane);
  samples += at;
  weights += at;
#pragma unroll 1
  for (int unit = 0; unit < units / kWarps; unit += 8) {
    float2 a[kSamples / 8], b[kInputs / 8];
#pragma unroll
    for (int i = 0; i < kSamples / 8; ++i) {
      a[i] = *reinterpret_cast<const float2*>(samples + 8 * i * pitch + unit);
    }
#pragma unroll
    for (int j = 0; j < kInputs / 8; ++j) {
      b[j] = *reinterpret_cast<const float2*>(weights + 8 * j * pitch + unit);
    }
#pragma unroll
    for (int i = 0; i < kSamples / 16; ++i) {
      const double first[2] = {a[2 * i].x, a[2 * i + 1].x};
      const double second[2] = {a[2 * i].y, a[2 * i + 1].y};
#pragma unroll
      for (int j = 0; j < kInputs / 8; ++j) AddDoubleMma(first, b[j].x, sums[i][j]);
#pragma unroll
      for (int j = 0; j < kInputs / 8; ++j) AddDoubleMma(second, b[j].y, sums[i][j]);
    }
  }
}

__device__ void StoreSums(const double (&result)[kSamples / 16][kInputs / 8][4], float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  sums += warp * kWarpSums + MmaGroup(lane) * kSumsPitch + 2 * MmaPlace(lane);
#pragma unroll
  for (int i = 0; i < kSamples / 8; ++i) {
#pragma unroll
    for (int j = 0; j < kInputs / 8; ++j) {
      const double(&four)[4] = result[i / 2][j];
      *reinterpret_cast<float2*>(sums + 8 * i * kSumsPitch + 8 * j) =
          make_float2(static_cast<float>(four[i % 2 * 2]), static_cast<float>(four[i % 2 * 2 + 1]));
    }
  }
}

// Where a thread's results go, and whether they are needed.
struct Results {
  int places[kResults];  // in d_x; -1: nowhere
  bool masked[kResults];

  __device__ Results(const DenseInputGradient& call, int first_input) {
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      const int sample = SampleOf(i);
      const int input = first_input + InputOf(i);
      const bool is_there = sample < call.batch && input < call.inputs;
      places[i] = -1;
      masked[i] = true;
      if (!is_there) continue;
      places[i] = sample * call.d_sample + (call.d_columns.table != nullptr
                                                ? __ldg(call.d_columns.table + input)
                                                : input * call.d_columns.stride);
      masked[i] = !(__ldg(call.mask + sample * call.inputs + input) > 0);
    }
  }
  __device__ static int SampleOf(int i) { return (i * kThreads + Thread()) / kInputs; }
  __device__ static int InputOf(int i) { return (i * kThreads + Thread()) % kInputs; }

  // Adds the sums of the warps, in order.
  __device__ void Store(const float* sums, float* d_x) const {
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      if (places[i] < 0) continue;
      const float* from = sums + SampleOf(i) * kSumsPitch + InputOf(i);
      float sum = from[0];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) sum += from[w * kWarpSums];
      d_x[places[i]] = masked[i] ? 0.0F : sum;
    }
  }

 private:
  __device__ static int Thread() { return static_cast<int>(threadIdx.x); }
};

// Grid: groups of inputs. The weights do not change while the kernels of an update run. The mask is
// written by an earlier kernel of the update, which may not have ended. Few registers, so that
// kernels off the critical path can run at the same time.
__global__ void __maxnreg__(96)
    DenseInputGradientKernel(const __grid_constant__ DenseInputGradient call) {
  extern __shared__ __align__(16) float memory[];
  __shared__ ArrivalBarrier arrived;
  float* weights = memory;
  float* samples = memory + kInputs * PitchOf(call.units);
  const int first_input = static_cast<int>(blockIdx.x) * kInputs;
  const int inputs = min(kInputs, call.inputs - first_input);
  if (threadIdx.x == 0) {
    arrived.Initialize(1);
    FenceArrivals();
    arrived.Expect(static_cast<unsigned>(sizeof(float)) * call.units * (inputs + call.batch));
  }
  __syncthreads();
  if (threadIdx.x < kWarp) {
    StartRows(call.w + static_cast<std::ptrdiff_t>(first_input) * call.units, call.units, inputs,
              weights, arrived);
  }
  AwaitPredecessor();
  if (threadIdx.x < kWarp) StartRows(call.d_out, call.units, call.batch, samples, arrived);
  const Results results(call, first_input);
  double sums[kSamples / 16][kInputs / 8][4] = {};
  arrived.Wait(0);
  Multiply(samples, weights, call.units, sums);
  __syncthreads();  // the sums take the place of the operands
  StoreSums(sums, memory);
  __syncthreads();
  results.Store(memory, call.d_x);
}

}  // namespace

bool SupportsDenseInputGradient(int batch, int units) {
  constexpr std::size_t kMostBytes = 128 * 1024;  // leaves shared memory for other kernels
  return batch <= kSamples && units % kUnitsStep == 0 && BytesOf(units) <= kMostBytes;
}

void LaunchDenseInputGradient(const DenseInputGradient& call, cudaStream_t stream) {
  UPER_CHECK(SupportsDenseInputGradient(call.batch, call.units),
             "LaunchDenseInputGradient() does not support this layer");
  LaunchKernel("input gradient of a dense layer", DenseInputGradientKernel,
               {.grid = static_cast<unsigned>((call.inputs + kInputs - 1) / kInputs),
                .block = kThreads,
                .shared_bytes = BytesOf(call.units),
                .stream = stream,
                .order = call.order},
               call);
}

}  // namespace uper::cuda
