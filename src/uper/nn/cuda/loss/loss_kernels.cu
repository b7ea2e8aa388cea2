#include "uper/nn/cuda/loss/loss_common.cuh"
#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kThreads = 256;

// One thread per (sample, member).
__global__ void ScalarKernel(const __grid_constant__ LossCall call) {
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
  // Like std::clamp: NaN stays NaN.
  const double bounded = bound > 0 ? (weighted < -bound  ? -bound
                                      : weighted > bound ? bound
                                                         : weighted)
                                   : weighted;
  call.d_out[i] = learns ? static_cast<float>(-scale * bounded) : 0.0F;
  const bool needed = learns || call.loss.td_priority == TdErrorKind::kLoss;
  call.members[i] =
      StatisticsOf(call, b, learns, scale, needed ? 0.5 * delta * delta : 0, value, next_value);
}

// values = softmax of the logits in shared memory; returns the log of the sum of exponentials.
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

// The projected mass of atom i: parts of the shifted atoms are added in ascending order, as in
// ProjectCategorical().
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

// One block per (sample, member), one thread per atom.
__global__ void __launch_bounds__(kThreads)
    CategoricalKernel(const __grid_constant__ LossCall call) {
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
  const bool needed = learns || call.loss.td_priority == TdErrorKind::kLoss;
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
    call.members[blockIdx.x] = StatisticsOf(call, b, learns, scale, loss, value, next_value);
  }
}

}  // namespace

void LaunchLoss(const LossCall& call, cudaStream_t stream, LaunchOrder order) {
  const unsigned rows = call.batch * call.shape.members;
  const std::size_t outputs = call.shape.outputs;
  LaunchShape shape{
      .grid = rows, .block = kThreads, .shared_bytes = 0, .stream = stream, .order = order};
  switch (call.loss.head) {
    case HeadKind::kScalar:
      shape.grid = (rows + kWarpSize - 1) / kWarpSize;
      shape.block = kWarpSize;
      return LaunchKernel("losses", ScalarKernel, shape, call);
    case HeadKind::kQuantile:
      return LaunchQuantileSamples(call, stream, order);
    case HeadKind::kCategorical:
      shape.shared_bytes = sizeof(float) * 4 * outputs;
      return LaunchKernel("losses", CategoricalKernel, shape, call);
  }
}

}  // namespace uper::cuda
