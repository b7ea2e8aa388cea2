#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/reductions.cuh"
#include "uper/nn/cuda/sample_kernels.h"

namespace uper {
namespace {

constexpr int kThreads = 256;

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

}  // namespace uper
