#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/reductions.cuh"
#include "uper/nn/cuda/sample_kernels.h"

namespace uper {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

__device__ bool Learns(const SampleCall& call, int b, int k) {
  return (call.masks[b] >> k & 1) != 0;
}

// 1 / number of terms in the batch's mean. Every warp computes it alone.
__device__ double SampleScale(const SampleCall& call) {
  if (call.loss.sum_members) return 1.0 / call.batch;
  const std::uint64_t members = ~std::uint64_t{0} >> (64 - call.shape.members);
  int terms = 0;
  for (int b = static_cast<int>(threadIdx.x) % kWarpSize; b < call.batch; b += kWarpSize) {
    terms += __popcll(call.masks[b] & members);
  }
  terms = WarpSum(terms);
  return 1.0 / (terms > 1 ? terms : 1);
}

// One output from its parts, at = (b * members + k) * outputs + j.
__device__ float SumOfParts(const SampleCall& call, const float* parts, const float* bias,
                            int action, int k, int j, std::ptrdiff_t at) {
  const HeadShape& s = call.shape;
  const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(call.batch) * s.members * s.outputs;
  float sum = __ldg(bias + (s.shared_bias ? 0 : (action * s.members + k) * s.outputs + j));
#pragma unroll
  for (int part = 0; part < kHeadParts; ++part) sum += __ldg(parts + part * step + at);
  return sum;
}

struct Outputs {
  float online;
  float target;
};
__device__ Outputs OutputsAt(const SampleCall& call, int b, int k, int j) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(b) * call.shape.members + k;
  const std::ptrdiff_t at = row * call.shape.outputs + j;
  return {
      SumOfParts(call, call.online_parts, call.online_bias, call.actions[b], k, j, at),
      SumOfParts(call, call.target_parts, call.target_bias, call.target_actions[row], k, j, at)};
}

__device__ MemberFindings FindingsOf(const SampleCall& call, int b, bool learns, double scale,
                                     double loss, double value, double next_value) {
  return {.loss = loss,
          .share = learns ? scale * static_cast<double>(call.weights[b]) * loss : 0,
          .value = value,
          .next_value = next_value};
}

// A thread a (sample, member).
__global__ void ScalarKernel(const __grid_constant__ SampleCall call) {
  AwaitPredecessor();
  const double scale = SampleScale(call);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= call.batch * call.shape.members) return;
  const int b = i / call.shape.members;
  const int k = i % call.shape.members;
  const Outputs outputs = OutputsAt(call, b, k, 0);
  call.online[i] = outputs.online;
  call.target[i] = outputs.target;
  const double value = static_cast<double>(outputs.online);
  const double next_value = static_cast<double>(outputs.target);
  const double delta = static_cast<double>(call.r_t[b]) +
                       static_cast<double>(call.discount_t[b]) * next_value - value;
  const bool learns = Learns(call, b, k);
  const double weighted = static_cast<double>(call.weights[b]) * delta;
  const double bound = call.loss.td_gradient_bound;
  // As std::clamp: what is not a number stays so.
  const double bounded = bound > 0 ? (weighted < -bound  ? -bound
                                      : weighted > bound ? bound
                                                         : weighted)
                                   : weighted;
  call.d_out[i] = learns ? static_cast<float>(-scale * bounded) : 0.0F;
  const bool needed = learns || call.loss.td_priority == TdPriority::kLoss;
  call.members[i] =
      FindingsOf(call, b, learns, scale, needed ? 0.5 * delta * delta : 0, value, next_value);
}

// Sums over the targets for one online quantile (nn/cpu/quantile_huber.cc).
struct HuberSums {
  float loss = 0;
  float slope = 0;
};
template <bool kHuber>
__device__ void AddHuber(float target, float theta, float tau, float kappa, HuberSums& sums) {
  const float u = target - theta;
  float slope;
  float size = u;
  if (kHuber) {
    const float clipped = fmaxf(fminf(u, kappa), -kappa);
    slope = (u < 0 ? 1.0F - tau : tau) * clipped;
    size = fmaf(-0.5F, clipped, u);
  } else {
    slope = u < 0 ? tau - 1.0F : u > 0 ? tau : 0.0F;
  }
  sums.slope += slope;
  sums.loss = fmaf(slope, size, sums.loss);
}

template <bool kHuber>
__device__ HuberSums SumHuber(const float* targets, int count, float theta, float tau,
                              float kappa) {
  HuberSums sums;
  int j = 0;
#pragma unroll 4
  for (; j + 4 <= count; j += 4) {
    const float4 four = *reinterpret_cast<const float4*>(targets + j);
    AddHuber<kHuber>(four.x, theta, tau, kappa, sums);
    AddHuber<kHuber>(four.y, theta, tau, kappa, sums);
    AddHuber<kHuber>(four.z, theta, tau, kappa, sums);
    AddHuber<kHuber>(four.w, theta, tau, kappa, sums);
  }
  for (; j < count; ++j) AddHuber<kHuber>(targets[j], theta, tau, kappa, sums);
  return sums;
}

// Whole groups of four: they are read at once.
__host__ __device__ int QuantileRoom(int quantiles) { return (quantiles + 3) / 4 * 4; }

// A block a (sample, member), a thread an online quantile.
__global__ void __launch_bounds__(kThreads)
    QuantileKernel(const __grid_constant__ SampleCall call) {
  extern __shared__ __align__(16) float targets[];
  __shared__ double scratch[2][kWarpSize];
  const int m = call.shape.outputs;
  float* own = targets + QuantileRoom(m);  // the online quantiles
  const int b = static_cast<int>(blockIdx.x) / call.shape.members;
  const int k = static_cast<int>(blockIdx.x) % call.shape.members;
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(blockIdx.x) * m;
  // What the kernel before does not write.
  const float r_t = call.r_t[b];
  const float discount_t = call.discount_t[b];
  const bool learns = Learns(call, b, k);
  const bool needed = learns || call.loss.td_priority == TdPriority::kLoss;
  const double scale = SampleScale(call);
  const float factor = static_cast<float>(scale * static_cast<double>(call.weights[b]));
  AwaitPredecessor();
  double value = 0;
  double next_value = 0;
  for (int j = static_cast<int>(threadIdx.x); j < m; j += kThreads) {
    const Outputs outputs = OutputsAt(call, b, k, j);
    call.online[row + j] = own[j] = outputs.online;
    call.target[row + j] = outputs.target;
    // Rounded twice, as on the CPU.
    targets[j] = __fadd_rn(r_t, __fmul_rn(discount_t, outputs.target));
    value += static_cast<double>(outputs.online);
    next_value += static_cast<double>(outputs.target);
  }
  __syncthreads();

  const float kappa = static_cast<float>(call.loss.huber_kappa);
  const float step = 1.0F / static_cast<float>(m);
  double loss = 0;
  for (int i = static_cast<int>(threadIdx.x); i < m; i += kThreads) {
    float derivative = 0;
    if (needed) {
      const float tau = (static_cast<float>(i) + 0.5F) * step;
      const HuberSums sums = kappa > 0 ? SumHuber<true>(targets, m, own[i], tau, kappa)
                                       : SumHuber<false>(targets, m, own[i], tau, kappa);
      loss += static_cast<double>(sums.loss);
      derivative = sums.slope / -static_cast<float>(m) * factor;
    }
    call.d_out[row + i] = learns ? derivative : 0.0F;
  }
  value = BlockSum(value, scratch[0]) / m;
  next_value = BlockSum(next_value, scratch[1]) / m;
  loss = BlockSum(loss, scratch[0]) / m;
  if (threadIdx.x == 0) {
    call.members[blockIdx.x] = FindingsOf(call, b, learns, scale, loss, value, next_value);
  }
}

// values = softmax of the logits in shared memory; returns log of the sum of exponentials.
__device__ double BlockSoftmax(const float* logits, int atoms, float* values, double* scratch) {
  float largest = logits[0];
  for (int j = 1; j < atoms; ++j) largest = fmaxf(largest, logits[j]);
  double sum = 0;
  double wide_sum = 0;
  for (int j = static_cast<int>(threadIdx.x); j < atoms; j += kThreads) {
    const float mass = expf(logits[j] - largest);
    values[j] = mass;
    sum += static_cast<double>(mass);
    wide_sum += exp(static_cast<double>(logits[j]) - static_cast<double>(largest));
  }
  sum = BlockSum(sum, scratch);
  wide_sum = BlockSum(wide_sum, scratch);
  for (int j = static_cast<int>(threadIdx.x); j < atoms; j += kThreads) {
    values[j] = static_cast<float>(static_cast<double>(values[j]) / sum);
  }
  __syncthreads();
  return static_cast<double>(largest) + log(wide_sum);
}

// The projected mass of atom i: each shifted atom's shares in ascending order, as
// ProjectCategorical() adds them.
__device__ float ProjectedMass(const AtomSupport& support, const float* probabilities, int atoms,
                               double spacing, double r_t, double discount_t, int i) {
  float mass_sum = 0;
  const double last = atoms - 1;
  for (int j = 0; j < atoms; ++j) {
    const double z =
        fmin(fmax(r_t + discount_t * (support.low + spacing * j), support.low), support.high);
    const double position = fmin((z - support.low) / spacing, last);
    const int lower = static_cast<int>(position);
    if (lower != i && lower + 1 != i) continue;
    const double upper_share = position - lower;
    const double mass = static_cast<double>(probabilities[j]);
    if (lower == i) {
      mass_sum += static_cast<float>(mass * (1 - upper_share));
    } else if (upper_share > 0) {
      mass_sum += static_cast<float>(mass * upper_share);
    }
  }
  return mass_sum;
}

// A block a (sample, member), a thread an atom.
__global__ void __launch_bounds__(kThreads)
    CategoricalKernel(const __grid_constant__ SampleCall call) {
  extern __shared__ __align__(16) float memory[];
  __shared__ double scratch[kWarpSize];
  AwaitPredecessor();
  const int atoms = call.shape.outputs;
  float* logits = memory;
  float* probabilities = logits + atoms;
  float* target_logits = probabilities + atoms;
  float* target_probabilities = target_logits + atoms;
  const int b = static_cast<int>(blockIdx.x) / call.shape.members;
  const int k = static_cast<int>(blockIdx.x) % call.shape.members;
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(blockIdx.x) * atoms;
  const AtomSupport& support = call.loss.support;
  const double spacing = (support.high - support.low) / (atoms - 1);
  const int thread = static_cast<int>(threadIdx.x);
  for (int j = thread; j < atoms; j += kThreads) {
    const Outputs outputs = OutputsAt(call, b, k, j);
    logits[j] = outputs.online;
    target_logits[j] = outputs.target;
  }
  __syncthreads();
  const double log_sum = BlockSoftmax(logits, atoms, probabilities, scratch);
  BlockSoftmax(target_logits, atoms, target_probabilities, scratch);
  double value = 0;
  double next_value = 0;
  for (int j = thread; j < atoms; j += kThreads) {
    call.online[row + j] = probabilities[j];
    call.target[row + j] = target_probabilities[j];
    value += static_cast<double>(probabilities[j]) * (support.low + spacing * j);
    next_value += static_cast<double>(target_probabilities[j]) * (support.low + spacing * j);
  }
  value = BlockSum(value, scratch);
  next_value = BlockSum(next_value, scratch);

  const bool learns = Learns(call, b, k);
  const bool needed = learns || call.loss.td_priority == TdPriority::kLoss;
  const double scale = SampleScale(call);
  const double factor = scale * static_cast<double>(call.weights[b]);
  const double r_t = static_cast<double>(call.r_t[b]);
  const double discount_t = static_cast<double>(call.discount_t[b]);
  const bool finite = isfinite(r_t) && isfinite(discount_t);
  double loss = 0;
  for (int j = thread; j < atoms; j += kThreads) {
    float derivative = 0;
    if (needed) {
      const float mass =
          finite ? ProjectedMass(support, target_probabilities, atoms, spacing, r_t, discount_t, j)
                 : nanf("");
      loss += static_cast<double>(mass) * (log_sum - static_cast<double>(logits[j]));
      derivative = static_cast<float>(
          factor * (static_cast<double>(probabilities[j]) - static_cast<double>(mass)));
    }
    call.d_out[row + j] = learns ? derivative : 0.0F;
  }
  loss = BlockSum(loss, scratch);
  if (thread == 0) {
    call.members[blockIdx.x] = FindingsOf(call, b, learns, scale, loss, value, next_value);
  }
}

// Statistics of one sample, in double (core/uncertainty.cc, core/categorical.cc).

struct Spread {
  double mean = 0;
  double variance = 0;
};
// Mean and population variance of value(j), j < count, by one warp: distances from the first value,
// then from the mean.
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

// [member, output] of one sample and its target.
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

// Of quantiles, the whole block. means: [output] doubles, moments: [member].
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
  disagreement = BlockSum(disagreement, scratch);  // and `means` is there for all
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

__device__ Uncertainty WithTarget(double mean, double epistemic, double aleatoric, double target) {
  const double distance_sq = (target - mean) * (target - mean);
  return {.mean = mean,
          .epistemic = epistemic,
          .aleatoric = aleatoric,
          .target_distance_sq = distance_sq,
          .epistemic_delta = distance_sq + epistemic,
          .total = epistemic + aleatoric,
          .total_delta = (distance_sq + epistemic) + aleatoric};
}

// The law of total variance: E = V_k[Q_k], A = mean_k V[z under p_k]. All warps do the same.
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

// The authors' form: v_kj = p_kj z_j in the place of quantiles.
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

// Quantiles of one categorical member (CategoricalQuantiles()), one thread.
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
    case CategoricalUncertainty::kProducts:
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

// A block a sample.
__global__ void __launch_bounds__(kThreads)
    StatisticsKernel(const __grid_constant__ StatisticsCall call) {
  extern __shared__ __align__(16) double means[];  // [output], then MemberMoments [member]
  __shared__ double scratch[kWarpSize];
  const SampleCall& samples = call.samples;
  const int b = static_cast<int>(blockIdx.x);
  const int members = samples.shape.members;
  const int outputs = samples.shape.outputs;
  auto* moments = reinterpret_cast<MemberMoments*>(means + outputs);
  const double r_t = static_cast<double>(samples.r_t[b]);
  const double discount_t = static_cast<double>(samples.discount_t[b]);
  double absolute_errors = 0;
  double losses = 0;
  double mean_target = 0;
  for (int k = 0; k < members; ++k) {
    const MemberFindings& found = samples.members[b * members + k];
    const double target_value = r_t + discount_t * found.next_value;
    absolute_errors += fabs(target_value - found.value);
    losses += found.loss;
    mean_target += target_value / members;
  }
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(b) * members * outputs;
  const Ensemble ensemble{samples.online + row, samples.target + row, members, outputs};
  const bool categorical = samples.loss.head == HeadKind::kCategorical;
  const Uncertainty uncertainty =
      categorical
          ? CategoricalUncertaintyOf(call, ensemble, r_t, discount_t, mean_target, means, moments,
                                     scratch)
          : QuantileUncertainty(samples.loss, ensemble, r_t, discount_t, means, moments, scratch);
  if (threadIdx.x > 0) return;
  double td_error = absolute_errors / members;
  if (samples.loss.td_priority == TdPriority::kLoss) {
    td_error = losses / members;
    if (categorical && kLargestLossPriority < td_error) td_error = kLargestLossPriority;
  }
  call.td_error[b] = td_error;
  call.uncertainty[b] = uncertainty;
}

}  // namespace

void LaunchSamples(const SampleCall& call, cudaStream_t stream, Follow follow) {
  const unsigned rows = call.batch * call.shape.members;
  const std::size_t outputs = call.shape.outputs;
  LaunchShape shape{
      .grid = rows, .block = kThreads, .shared_bytes = 0, .stream = stream, .follow = follow};
  switch (call.loss.head) {
    case HeadKind::kScalar:
      shape.grid = (rows + kWarpSize - 1) / kWarpSize;
      shape.block = kWarpSize;
      return LaunchKernel("losses", ScalarKernel, shape, call);
    case HeadKind::kQuantile:
      shape.shared_bytes = sizeof(float) * 2 * QuantileRoom(call.shape.outputs);
      return LaunchKernel("losses", QuantileKernel, shape, call);
    case HeadKind::kCategorical:
      shape.shared_bytes = sizeof(float) * 4 * outputs;
      return LaunchKernel("losses", CategoricalKernel, shape, call);
  }
}

void LaunchStatistics(const StatisticsCall& call, cudaStream_t stream) {
  const std::size_t bytes = sizeof(double) * call.samples.shape.outputs +
                            sizeof(MemberMoments) * call.samples.shape.members;
  LaunchKernel("statistics", StatisticsKernel,
               {.grid = static_cast<unsigned>(call.samples.batch),
                .block = kThreads,
                .shared_bytes = bytes,
                .stream = stream},
               call);
}

}  // namespace uper
