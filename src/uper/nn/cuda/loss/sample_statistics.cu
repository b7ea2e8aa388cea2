#include <cstddef>

#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

// Statistics of one sample, in double (core/uncertainty.cc, core/categorical.cc).

struct Spread {
  double mean = 0;
  double variance = 0;
};
// Mean and population variance of value(j), j < count; called by one warp. Uses distances from the
// first value, then from the mean.
template <typename Value>
__device__ Spread WarpSpread(int count, const Value& value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const double origin = value(0);
  double sum = 0;
  for (int j = lane; j < count; j += kWarpSize) sum += value(j) - origin;
  const double mean = WarpSum(sum) / count;
  double squares = 0;
  for (int j = lane; j < count; j += kWarpSize) {
    const double deviation = (value(j) - origin) - mean;
    squares += deviation * deviation;
  }
  return {origin + mean, WarpSum(squares) / count};
}

// Outputs [member, output] of one sample, and of its target.
struct Ensemble {
  const float* online;
  const float* target;
  int members;
  int outputs;
};

// Moments of one member that DecomposeTargetQuantiles() adds up.
struct MemberMoments {
  double gap = 0;              // mean T_k - mean theta_k
  double target_variance = 0;  // V_tau'(target_theta_k)
  double shape_variance = 0;   // V_tau(theta_k,tau - mean_k theta_k,tau)
  double next_mean = 0;
};

// Statistics of quantiles; needs the whole block. means: [output] doubles, moments: [member].
__device__ Uncertainty QuantileUncertainty(const LossSpec& loss, const Ensemble& e, double r_t,
                                           double discount_t, double* means, MemberMoments* moments,
                                           double* scratch) {
  const int m = e.outputs;
  double disagreement = 0;
  for (int j = static_cast<int>(threadIdx.x); j < m; j += kThreads) {
    const double origin = static_cast<double>(e.online[j]);
    double mean = 0;
    for (int k = 1; k < e.members; ++k) mean += static_cast<double>(e.online[k * m + j]) - origin;
    mean /= e.members;
    means[j] = mean;
    for (int k = 0; k < e.members; ++k) {
      const double deviation = (static_cast<double>(e.online[k * m + j]) - origin) - mean;
      disagreement += deviation * deviation;
    }
  }
  disagreement = BlockSum(disagreement, scratch);  // now all threads see `means`
  for (int k = static_cast<int>(threadIdx.x) / kWarpSize; k < e.members; k += kWarps) {
    const float* online = e.online + k * m;
    const float* target = e.target + k * m;
    const Spread next = WarpSpread(m, [&](int j) { return static_cast<double>(target[j]); });
    const Spread own = WarpSpread(m, [&](int j) { return static_cast<double>(online[j]); });
    const Spread form = WarpSpread(m, [&](int j) {
      return (static_cast<double>(online[j]) - static_cast<double>(e.online[j])) - means[j];
    });
    if (threadIdx.x % kWarpSize != 0) continue;
    moments[k] = {.gap = (r_t + discount_t * next.mean) - own.mean,
                  .target_variance = next.variance,
                  .shape_variance = form.variance,
                  .next_mean = next.mean};
  }
  __syncthreads();
  const double first = static_cast<double>(e.online[0]);
  const Spread distribution =
      WarpSpread(m, [&](int j) { return means[j] + (static_cast<double>(e.online[j]) - first); });
  Uncertainty result;
  result.mean = first + distribution.mean;
  result.epistemic = disagreement / (e.members * m);
  result.aleatoric = distribution.variance;
  result.total = result.epistemic + result.aleatoric;
  double gaps = 0;
  double gap_squares = 0;
  double target_variances = 0;
  double shape_variances = 0;
  double next_means = 0;
  for (int k = 0; k < e.members; ++k) {
    gaps += moments[k].gap;
    gap_squares += moments[k].gap * moments[k].gap;
    target_variances += moments[k].target_variance;
    shape_variances += moments[k].shape_variance;
    next_means += moments[k].next_mean;
  }
  const double members = e.members;
  if (loss.target_form == TargetForm::kScalar) {
    const double distance = (r_t + discount_t * (next_means / members)) - result.mean;
    result.target_distance_sq = distance * distance;
    result.epistemic_delta = result.target_distance_sq + result.epistemic;
  } else {
    result.target_distance_sq = gaps / members * (gaps / members);
    result.epistemic_delta = discount_t * discount_t * (target_variances / members) +
                             gap_squares / members + shape_variances / members;
  }
  result.total_delta = result.epistemic_delta + result.aleatoric;
  return result;
}

// The law of total variance: E = V_k[Q_k], A = mean_k V[z under p_k]. All warps compute the same.
__device__ Uncertainty CategoricalVariance(const AtomSupport& support, const Ensemble& e,
                                           double target, MemberMoments* moments) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const double spacing = (support.high - support.low) / (e.outputs - 1);
  for (int k = static_cast<int>(threadIdx.x) / kWarpSize; k < e.members; k += kWarps) {
    const float* p = e.online + k * e.outputs;
    double mass = 0;
    double first = 0;
    for (int j = lane; j < e.outputs; j += kWarpSize) {
      mass += static_cast<double>(p[j]);
      first += static_cast<double>(p[j]) * (support.low + spacing * j);
    }
    mass = WarpSum(mass);
    const double mean = WarpSum(first) / mass;
    double squares = 0;
    for (int j = lane; j < e.outputs; j += kWarpSize) {
      const double deviation = (support.low + spacing * j) - mean;
      squares += static_cast<double>(p[j]) * deviation * deviation;
    }
    squares = WarpSum(squares);
    if (lane == 0) moments[k] = {.gap = mean, .target_variance = squares / mass};
  }
  __syncthreads();
  const Spread means = WarpSpread(e.members, [&](int k) { return moments[k].gap; });
  double variances = 0;
  for (int k = 0; k < e.members; ++k) variances += moments[k].target_variance;
  return WithTarget(means.mean, means.variance, variances / e.members, target);
}

// The authors' form: v_kj = p_kj z_j instead of quantiles.
__device__ Uncertainty CategoricalProducts(const AtomSupport& support, const Ensemble& e,
                                           double target, double* means, double* scratch) {
  const double spacing = (support.high - support.low) / (e.outputs - 1);
  double variances = 0;
  for (int j = static_cast<int>(threadIdx.x); j < e.outputs; j += kThreads) {
    const double atom = support.low + spacing * j;
    const auto product = [&](int k) {
      return static_cast<double>(e.online[k * e.outputs + j]) * atom;
    };
    double mean = 0;
    for (int k = 0; k < e.members; ++k) mean += product(k) - product(0);
    mean = product(0) + mean / e.members;
    means[j] = mean;
    double squares = 0;
    for (int k = 0; k < e.members; ++k) squares += (product(k) - mean) * (product(k) - mean);
    variances += squares / e.members;
  }
  variances = BlockSum(variances, scratch);
  const Spread products = WarpSpread(e.outputs, [&](int j) { return means[j]; });
  return WithTarget(products.mean * e.outputs, variances / e.outputs, products.variance, target);
}

// Quantiles of one categorical member (CategoricalQuantiles()), computed by one thread.
__device__ void AtomQuantiles(const AtomSupport& support, const float* probabilities, int atoms,
                              float* quantiles) {
  const double spacing = (support.high - support.low) / (atoms - 1);
  double mass = 0;
  for (int j = 0; j < atoms; ++j) mass += static_cast<double>(probabilities[j]);
  int j = 0;
  double below = 0;
  double upto = static_cast<double>(probabilities[0]);
  for (int i = 0; i < atoms; ++i) {
    const double tau = (i + 0.5) / atoms * mass;
    while (upto < tau && j + 1 < atoms) {
      ++j;
      below = upto;
      upto += static_cast<double>(probabilities[j]);
    }
    const double share = below > 0 ? (tau - below) / (upto - below) : 1;
    quantiles[i] =
        static_cast<float>((support.low + spacing * j) - spacing * (1 - (share < 1 ? share : 1)));
  }
}

__device__ Uncertainty CategoricalUncertaintyOf(const StatisticsCall& call, const Ensemble& e,
                                                double r_t, double discount_t, double mean_target,
                                                double* means, MemberMoments* moments,
                                                double* scratch) {
  const LossSpec& loss = call.samples.loss;
  switch (loss.categorical_uncertainty) {
    case CategoricalUncertainty::kTotalVariance:
      return CategoricalVariance(loss.support, e, mean_target, moments);
    case CategoricalUncertainty::kAuthors:
      return CategoricalProducts(loss.support, e, mean_target, means, scratch);
    case CategoricalUncertainty::kQuantiles:
      break;
  }
  const int size = e.members * e.outputs;
  float* online = call.quantiles + static_cast<std::ptrdiff_t>(blockIdx.x) * 2 * size;
  float* target = online + size;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * e.members; i += kThreads) {
    const int at = i / 2 * e.outputs;
    AtomQuantiles(loss.support, (i % 2 == 0 ? e.online : e.target) + at, e.outputs,
                  (i % 2 == 0 ? online : target) + at);
  }
  __syncthreads();
  return QuantileUncertainty(loss, {online, target, e.members, e.outputs}, r_t, discount_t, means,
                             moments, scratch);
}

// Shared memory of a block: means [output], moments and losses [member], and, if there is room,
// both outputs [member, output]. Other kernels keep memory busy at this time, so outputs are read
// only once.
struct StatisticsMemory {
  static constexpr std::size_t kMostBytes = 96 * 1024;

  int members, outputs;

  __host__ __device__ std::size_t moments() const { return sizeof(double) * outputs; }
  __host__ __device__ std::size_t statistics() const {
    return moments() + sizeof(MemberMoments) * members;
  }
  __host__ __device__ std::size_t copies() const {
    return statistics() + sizeof(MemberLoss) * members;
  }
  __host__ __device__ std::size_t with_copies() const {
    return copies() + 2 * sizeof(float) * members * outputs;
  }
  __host__ __device__ bool has_copies() const { return with_copies() <= kMostBytes; }
  std::size_t bytes() const { return has_copies() ? with_copies() : copies(); }
};

// Copies `count` values to shared memory; needs the whole block.
template <typename Value>
__device__ void Bring(const Value* from, int count, Value* to) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) to[i] = from[i];
}

// One block per sample.
__global__ void __launch_bounds__(kThreads)
    StatisticsKernel(const __grid_constant__ StatisticsCall call) {
  extern __shared__ __align__(16) std::byte memory[];
  __shared__ double scratch[kWarpSize];
  const LossCall& samples = call.samples;
  const int b = static_cast<int>(blockIdx.x);
  const int members = samples.shape.members;
  const int outputs = samples.shape.outputs;
  const StatisticsMemory places{.members = members, .outputs = outputs};
  auto* means = reinterpret_cast<double*>(memory);
  auto* moments = reinterpret_cast<MemberMoments*>(memory + places.moments());
  auto* statistics = reinterpret_cast<MemberLoss*>(memory + places.statistics());
  const int size = members * outputs;
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(b) * size;
  Ensemble ensemble{samples.online + row, samples.target + row, members, outputs};
  if (places.has_copies()) {
    auto* copies = reinterpret_cast<float*>(memory + places.copies());
    Bring(ensemble.online, size, copies);
    Bring(ensemble.target, size, copies + size);
    ensemble.online = copies;
    ensemble.target = copies + size;
  }
  Bring(samples.members + b * members, members, statistics);
  const double r_t = static_cast<double>(samples.r_t[b]);
  const double discount_t = static_cast<double>(samples.discount_t[b]);
  __syncthreads();
  double absolute_errors = 0;
  double losses = 0;
  double mean_target = 0;
  for (int k = 0; k < members; ++k) {
    const MemberLoss& found = statistics[k];
    const double target_value = r_t + discount_t * found.next_value;
    absolute_errors += fabs(target_value - found.value);
    losses += found.loss;
    mean_target += target_value / members;
  }
  const bool categorical = samples.loss.head == HeadKind::kCategorical;
  const Uncertainty uncertainty =
      categorical
          ? CategoricalUncertaintyOf(call, ensemble, r_t, discount_t, mean_target, means, moments,
                                     scratch)
          : QuantileUncertainty(samples.loss, ensemble, r_t, discount_t, means, moments, scratch);
  if (threadIdx.x > 0) return;
  double td_error = absolute_errors / members;
  if (samples.loss.td_priority == TdErrorKind::kLoss) {
    td_error = losses / members;
    if (categorical && kLargestLossPriority < td_error) td_error = kLargestLossPriority;
  }
  call.td_error[b] = td_error;
  call.uncertainty[b] = uncertainty;
}

}  // namespace

void LaunchStatistics(const StatisticsCall& call, cudaStream_t stream) {
  const HeadShape& shape = call.samples.shape;
  const std::size_t bytes =
      StatisticsMemory{.members = shape.members, .outputs = shape.outputs}.bytes();
  LaunchKernel("statistics", StatisticsKernel,
               {.grid = static_cast<unsigned>(call.samples.batch),
                .block = kThreads,
                .shared_bytes = bytes,
                .stream = stream},
               call);
}

}  // namespace uper::cuda
