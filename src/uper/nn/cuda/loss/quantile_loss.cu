#include <algorithm>

#include "uper/nn/cuda/loss/loss_common.cuh"
#include "uper/nn/cuda/loss/sorted_targets.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

// The quantile Huber loss (nn/cpu/kernels/quantile_huber.h) without forming the pairs. For sorted
// targets T, the pairs of an online quantile theta lie in four ranges:
//   T < theta - kappa, theta - kappa <= T < theta, theta <= T <= theta + kappa, theta + kappa < T.
// In each range a pair's loss is one polynomial of T. So its sum follows from the number of T in
// the range and from prefix sums of T and T^2. These sums are in double, of distances from the
// middle target, so that a common offset costs no accuracy.

constexpr int kMaxThreads = 256;

// Fills row.outputs, and row.runs if `sort`. Returns whether all numbers of the block are finite.
// Contains a barrier.
__device__ bool LoadRow(const LossCall& call, int b, int k, float r_t, float discount_t, bool sort,
                        const TargetRow& row) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(blockIdx.x) * row.count;
  bool finite = true;
  for (int j = static_cast<int>(threadIdx.x); j < row.runs_size();
       j += static_cast<int>(blockDim.x)) {
    float target = INFINITY;
    if (j < row.count) {
      const Outputs outputs = OutputsAt(call, b, k, j);
      row.outputs[j] = outputs;
      call.online[first + j] = outputs.online;
      call.target[first + j] = outputs.target;
      // Rounded twice, as on the CPU.
      target = __fadd_rn(r_t, __fmul_rn(discount_t, outputs.target));
      finite = finite && isfinite(target) && isfinite(outputs.online);
    }
    if (sort) row.runs[j] = WarpSort(target);
  }
  return __syncthreads_and(finite) != 0;
}

// The places of the first targets that are not < theta - kappa, not < theta and not <= theta +
// kappa.
struct Borders {
  unsigned low = 0;
  unsigned middle = 0;
  unsigned high = 0;
};
__device__ Borders FindBorders(const TargetRow& row, float theta, float kappa) {
  // Rounded so that a target is below it exactly if it is below the unrounded border.
  const float low = __fsub_ru(theta, kappa);
  const float high = NextAbove(__fadd_rd(theta, kappa));
  Borders at;
#pragma unroll 1
  for (unsigned half = row.span / 2; half > 0; half /= 2) {
    // `found` is a multiple of 2 half, so Place(found + x) = Place(found) + Place(x).
    const float* sorted = row.sorted + Place(half - 1);
    const unsigned step = Place(half);
    if (sorted[at.low] < low) at.low += step;
    if (sorted[at.middle] < theta) at.middle += step;
    if (sorted[at.high] < high) at.high += step;
  }
  return at;
}

// Sums of u = d - shift and of u^2 over `count` targets with distances d from the origin.
__device__ TargetSums SumsAround(const TargetSums& begin, const TargetSums& end, double count,
                                 double shift) {
  const double distances = end.distances - begin.distances;
  const double moved = distances - count * shift;
  // sum of d^2 - 2 d shift + shift^2
  return {.distances = moved,
          .squares = (end.squares - begin.squares) - shift * (distances + moved)};
}

// Sums over the targets for one online quantile.
struct HuberSums {
  double loss = 0;
  double slope = 0;
};
// With u = T - theta: if |u| > kappa, the loss is steepness * (|u| - kappa / 2) with slope
// +-steepness. Otherwise it is u^2 / 2 with slope u. Everything is multiplied by 1 - tau below
// theta and by tau above. kappa = 0 and steepness = 1 give the plain quantile loss.
__device__ HuberSums SumHuber(const TargetRow& row, float theta, float tau, float kappa,
                              double steepness) {
  const Borders at = FindBorders(row, theta, kappa);
  const double shift = static_cast<double>(theta) - OriginOf(row);
  const TargetSums low = row.prefix[at.low];
  const TargetSums middle = row.prefix[at.middle];
  const TargetSums high = row.prefix[at.high];
  const TargetSums all = row.prefix[Place(row.count)];
  const int low_count = EntryAt(at.low);
  const int middle_count = EntryAt(at.middle);
  const int high_count = EntryAt(at.high);
  const double many_below = low_count;
  const double many_above = row.count - high_count;
  const TargetSums far_below = SumsAround({}, low, many_below, shift);
  const TargetSums below = SumsAround(low, middle, middle_count - low_count, shift);
  const TargetSums above = SumsAround(middle, high, high_count - middle_count, shift);
  const TargetSums far_above = SumsAround(high, all, many_above, shift);

  const double half_kappa = 0.5 * static_cast<double>(kappa);
  const double loss_below =
      0.5 * below.squares - steepness * (far_below.distances + half_kappa * many_below);
  const double loss_above =
      0.5 * above.squares + steepness * (far_above.distances - half_kappa * many_above);
  const double level = static_cast<double>(tau);
  return {.loss = (1 - level) * loss_below + level * loss_above,
          .slope = (1 - level) * (below.distances - steepness * many_below) +
                   level * (above.distances + steepness * many_above)};
}

// Means of the online and of the target outputs; called by one warp.
struct Means {
  double value;
  double next_value;
};
__device__ Means MeansOf(const TargetRow& row) {
  double value = 0;
  double next_value = 0;
#pragma unroll 4
  for (int j = static_cast<int>(threadIdx.x) % kWarpSize; j < row.count; j += kWarpSize) {
    value += static_cast<double>(row.outputs[j].online);
    next_value += static_cast<double>(row.outputs[j].target);
  }
  return {WarpSum(value) / row.count, WarpSum(next_value) / row.count};
}

// One block per (sample, member), one thread per online quantile.
__global__ void __launch_bounds__(kMaxThreads)
    QuantileKernel(const __grid_constant__ LossCall call) {
  extern __shared__ TargetSums memory[];
  __shared__ double scratch[kWarpSize];
  __shared__ Means means;
  TargetRow row(call.shape.outputs);
  row.PlaceAt(memory);
  const int m = row.count;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int b = static_cast<int>(blockIdx.x) / call.shape.members;
  const int k = static_cast<int>(blockIdx.x) % call.shape.members;
  // Data that the previous kernel does not write.
  const float r_t = call.r_t[b];
  const float discount_t = call.discount_t[b];
  const bool learns = Learns(call, b, k);
  const bool needed = learns || call.loss.td_priority == TdErrorKind::kLoss;
  const double scale = SampleScale(call);
  const float factor = static_cast<float>(scale * static_cast<double>(call.weights[b]));
  AwaitPredecessor();
  const bool finite = LoadRow(call, b, k, r_t, discount_t, needed, row);
  const bool summed = needed && finite;
  if (summed) MergeRuns(row);
  // The first and the last warp do this at the same time.
  if (summed && thread < kWarpSize) SumPrefixes(row);
  if (thread >= threads - kWarpSize) {
    const Means found = MeansOf(row);
    if (thread == threads - 1) means = found;
  }
  __syncthreads();

  const float huber_kappa = static_cast<float>(call.loss.huber_kappa);
  const float kappa = huber_kappa > 0 ? huber_kappa : 0.0F;
  const double steepness = huber_kappa > 0 ? static_cast<double>(huber_kappa) : 1.0;
  const float step = 1.0F / static_cast<float>(m);
  // NaN cannot be sorted, but it must reach the loss.
  const double unknown = static_cast<double>(nanf(""));
  double loss = 0;
  for (int i = thread; i < m; i += threads) {
    HuberSums sums{.loss = needed ? unknown : 0, .slope = needed ? unknown : 0};
    if (summed) {
      const float tau = (static_cast<float>(i) + 0.5F) * step;
      sums = SumHuber(row, row.outputs[i].online, tau, kappa, steepness);
    }
    loss += sums.loss;
    const float derivative = static_cast<float>(sums.slope) / -static_cast<float>(m) * factor;
    call.d_out[static_cast<std::ptrdiff_t>(blockIdx.x) * m + i] = learns ? derivative : 0.0F;
  }
  loss = BlockSum(loss, scratch) / m;
  if (thread == 0) {
    call.members[blockIdx.x] =
        StatisticsOf(call, b, learns, scale, loss, means.value, means.next_value);
  }
}

}  // namespace

void LaunchQuantileSamples(const LossCall& call, cudaStream_t stream, LaunchOrder order) {
  const TargetRow row(call.shape.outputs);
  LaunchKernel("losses", QuantileKernel,
               {.grid = static_cast<unsigned>(call.batch * call.shape.members),
                .block = static_cast<unsigned>(std::min(row.runs_size(), kMaxThreads)),
                .shared_bytes = row.bytes(),
                .stream = stream,
                .order = order},
               call);
}

}  // namespace uper::cuda
