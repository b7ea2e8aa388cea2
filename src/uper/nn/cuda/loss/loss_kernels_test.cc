#include "uper/nn/cuda/loss/loss_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "uper/nn/cpu/sample_loss.h"
#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

std::vector<double> Numbers(const Uncertainty& u) {
  return {u.mean,  u.epistemic,  u.aleatoric, u.target_distance_sq, u.epistemic_delta,
          u.total, u.total_delta};
}

constexpr int kActions = 3;

struct Size {
  int members = 1;
  int outputs = 1;
  int batch = 1;

  std::size_t count() const { return std::size_t{1} * batch * members * outputs; }
};

struct DataForm {
  double offset = 0;  // added to the outputs
  double spread = 1;
  // If not 0, all numbers are multiples of it and nothing is discounted, so that many outputs and
  // targets are equal.
  double grid = 0;
};

struct Inputs {
  Inputs(const Size& size, const DataForm& form)
      : online_parts(RandomFloats(kHeadParts * size.count(), "online")),
        target_parts(RandomFloats(kHeadParts * size.count(), "target")),
        bias(RandomFloats(std::size_t{1} * kActions * size.members * size.outputs, "bias")),
        rewards(RandomFloats(size.batch, "rewards")),
        discounts(size.batch, form.grid > 0 ? 1.0F : 0.97F),
        weights(RandomFloats(size.batch, "weights")),
        taken(RandomInts(size.batch, kActions, "taken")),
        greedy(RandomInts(std::size_t{1} * size.batch * size.members, kActions, "greedy")) {
    for (std::vector<float>* values : {&online_parts, &target_parts, &bias, &rewards}) {
      for (float& value : *values) {
        double x = form.spread * double{value};
        if (form.grid > 0) x = std::round(x / form.grid) * form.grid;
        value = static_cast<float>(x);
      }
    }
    for (float& value : bias) value += static_cast<float>(form.offset);
    for (float& weight : weights) weight = std::abs(weight);
    discounts[0] = 0;
    for (const int mask : RandomInts(size.batch, 1 << 30, "masks")) masks.push_back(mask);
  }

  std::vector<float> online_parts, target_parts, bias, rewards, discounts, weights;
  std::vector<int> taken, greedy;
  std::vector<std::uint64_t> masks;
};

struct OnDevice {
  OnDevice(const LossSpec& loss, const Size& size, const Inputs& inputs)
      : online_parts(OnGpu(inputs.online_parts)),
        target_parts(OnGpu(inputs.target_parts)),
        bias(OnGpu(inputs.bias)),
        rewards(OnGpu(inputs.rewards)),
        discounts(OnGpu(inputs.discounts)),
        weights(OnGpu(inputs.weights)),
        taken(OnGpu(inputs.taken)),
        greedy(OnGpu(inputs.greedy)),
        masks(OnGpu(inputs.masks)),
        online(Poisoned(size.count())),
        target(Poisoned(size.count())),
        d_out(Poisoned(size.count())),
        found(std::size_t{1} * size.batch * size.members),
        call{.loss = loss,
             .shape = {.actions = kActions,
                       .members = size.members,
                       .hidden = 1,
                       .outputs = size.outputs},
             .batch = size.batch,
             .online_parts = online_parts.data(),
             .target_parts = target_parts.data(),
             .online_bias = bias.data(),
             .target_bias = bias.data(),
             .actions = taken.data(),
             .target_actions = greedy.data(),
             .r_t = rewards.data(),
             .discount_t = discounts.data(),
             .weights = weights.data(),
             .masks = masks.data(),
             .online = online.data(),
             .target = target.data(),
             .d_out = d_out.data(),
             .members = found.data()} {}

  DeviceBuffer<float> online_parts, target_parts, bias, rewards, discounts, weights;
  DeviceBuffer<int> taken, greedy;
  DeviceBuffer<std::uint64_t> masks;
  DeviceBuffer<float> online, target, d_out;
  DeviceBuffer<MemberLoss> found;
  LossCall call;
};

// d_out of a quantile head from its pairs, summed in double: the CPU's float sums lose more than
// the tolerance of the tests.
std::vector<double> PairDerivatives(const LossSpec& loss, const Size& size,
                                    const cpu::SampleInputs& sample) {
  const int m = size.outputs;
  const float kappa = static_cast<float>(loss.huber_kappa);
  std::vector<double> derivatives;
  for (int at = 0; at < size.members * m; ++at) {
    const int k = at / m;
    const float tau = (static_cast<float>(at % m) + 0.5F) * (1.0F / static_cast<float>(m));
    double slope = 0;
    for (int j = 0; j < m; ++j) {
      const float target = sample.r_t + sample.discount_t * sample.target[k * m + j];
      const double u = double{target} - double{sample.online[at]};
      const double bound = double{kappa};
      const double clipped = kappa > 0 ? std::clamp(u, -bound, bound) : u < 0 ? -1 : u > 0 ? 1 : 0;
      slope += (u < 0 ? 1 - double{tau} : double{tau}) * clipped;
    }
    const bool learns = (sample.mask >> k & 1) != 0;
    derivatives.push_back(learns ? -slope / m * sample.scale * double{sample.weight} : 0);
  }
  return derivatives;
}

// Runs random samples through both implementations.
void Check(const LossSpec& loss, int members, int outputs, int batch, const DataForm& form = {}) {
  SCOPED_TRACE(
      testing::Message() << "head " << int(loss.head) << " members " << members << " outputs "
                         << outputs << " batch " << batch << " form " << int(loss.target_form)
                         << int(loss.td_priority) << int(loss.categorical_uncertainty) << " kappa "
                         << loss.huber_kappa << " spread " << form.spread << " grid " << form.grid);
  const Size size{members, outputs, batch};
  const Inputs inputs(size, form);
  OnDevice gpu(loss, size, inputs);
  DeviceBuffer<float> quantiles = Poisoned(2 * size.count());
  DeviceBuffer<double> td_errors(batch);
  DeviceBuffer<Uncertainty> uncertainty(batch);
  LaunchLoss(gpu.call, nullptr);
  LaunchStatistics({.samples = gpu.call,
                    .quantiles = quantiles.data(),
                    .td_error = td_errors.data(),
                    .uncertainty = uncertainty.data()},
                   nullptr);

  const std::uint64_t everybody = ~std::uint64_t{0} >> (64 - members);
  int terms = 0;
  for (const std::uint64_t mask : inputs.masks) terms += std::popcount(mask & everybody);
  const double scale =
      loss.member_weighting == MemberWeighting::kSum ? 1.0 / batch : 1.0 / std::max(1, terms);
  const EnsembleShape shape{std::size_t(members), std::size_t(outputs)};
  cpu::LossScratch scratch(shape);
  std::vector<double> expected_d, cpu_d, expected_losses, expected_td, expected_statistics;
  for (int b = 0; b < batch; ++b) {
    std::vector<float> z, next, d(members * outputs);
    for (int k = 0; k < members; ++k) {
      for (int m = 0; m < outputs; ++m) {
        const std::size_t at = (std::size_t{1} * b * members + k) * outputs + m;
        float x = inputs.bias[(inputs.taken[b] * members + k) * outputs + m];
        float y = inputs.bias[(inputs.greedy[b * members + k] * members + k) * outputs + m];
        for (int part = 0; part < kHeadParts; ++part) {
          x += inputs.online_parts[part * size.count() + at];
          y += inputs.target_parts[part * size.count() + at];
        }
        z.push_back(x);
        next.push_back(y);
      }
    }
    const cpu::SampleInputs sample_inputs{.online = z,
                                          .target = next,
                                          .r_t = inputs.rewards[b],
                                          .discount_t = inputs.discounts[b],
                                          .weight = inputs.weights[b],
                                          .mask = inputs.masks[b],
                                          .scale = scale};
    const cpu::SampleOutputs sample =
        cpu::ComputeSampleLoss(loss, shape, sample_inputs, scratch, d);
    cpu_d.insert(cpu_d.end(), d.begin(), d.end());
    if (loss.head == HeadKind::kQuantile) {
      for (const double x : PairDerivatives(loss, size, sample_inputs)) expected_d.push_back(x);
    } else {
      expected_d.insert(expected_d.end(), d.begin(), d.end());
    }
    expected_losses.push_back(sample.loss);
    expected_td.push_back(sample.td_error);
    for (const double x : Numbers(sample.uncertainty)) expected_statistics.push_back(x);
  }
  std::vector<double> losses(batch), statistics;
  const std::vector<MemberLoss> members_found = FromGpu(gpu.found);
  for (int i = 0; i < batch * members; ++i) losses[i / members] += members_found[i].share;
  for (const Uncertainty& u : FromGpu(uncertainty)) {
    for (const double x : Numbers(u)) statistics.push_back(x);
  }
  for (const float x : FromGpu(gpu.d_out)) ASSERT_TRUE(std::isfinite(x));
  EXPECT_LT(RelativeError(FromGpu(gpu.d_out), expected_d), 1e-6);
  // The tolerance allows for the rounding of a sum of this many floats.
  EXPECT_LT(RelativeError(FromGpu(gpu.d_out), cpu_d), 1e-6 + outputs * 0x1p-24);
  EXPECT_LT(RelativeError(losses, expected_losses), 1e-6);
  EXPECT_LT(RelativeError(FromGpu(td_errors), expected_td), 1e-6);
  // Each kind of statistic is compared relative to its own size.
  for (int field = 0; field < 7; ++field) {
    std::vector<double> one, expected_one;
    for (int b = 0; b < batch; ++b) {
      one.push_back(statistics[b * 7 + field]);
      expected_one.push_back(expected_statistics[b * 7 + field]);
    }
    EXPECT_LT(RelativeError(one, expected_one), 1e-6) << "field " << field;
  }
}

class LossKernelsTest : public GpuTest {};

TEST_F(LossKernelsTest, ScalarHeads) {
  for (const double bound : {0.0, 1.0}) {
    for (const TdErrorKind priority : {TdErrorKind::kMeanAbsolute, TdErrorKind::kLoss}) {
      const LossSpec loss{
          .head = HeadKind::kScalar, .td_gradient_bound = bound, .td_priority = priority};
      Check(loss, 1, 1, 1);
      Check(loss, 1, 1, 32);
      Check(loss, 10, 1, 33);
    }
  }
}

TEST_F(LossKernelsTest, QuantileHeads) {
  for (const double kappa : {0.0, 1.0}) {
    for (const TargetForm form : {TargetForm::kAtari, TargetForm::kScalar}) {
      for (const MemberWeighting weighting : {MemberWeighting::kMean, MemberWeighting::kSum}) {
        LossSpec loss{.huber_kappa = kappa, .member_weighting = weighting, .target_form = form};
        Check(loss, 1, 1, 1);
        Check(loss, 10, 201, 31);
        Check(loss, 3, 300, 5);
        Check(loss, 30, 51, 64);
        loss.td_priority = TdErrorKind::kLoss;
        Check(loss, 2, 7, 9);
      }
    }
  }
}

TEST_F(LossKernelsTest, EqualQuantilesAndTargets) {
  for (const double kappa : {0.0, 0.5, 1.0}) {
    for (const double grid : {0.25, 4.0}) {
      Check({.huber_kappa = kappa}, 10, 201, 8, {.grid = grid});
      Check({.huber_kappa = kappa}, 3, 7, 8, {.grid = grid});
    }
  }
}

TEST_F(LossKernelsTest, QuantilesFarFromTheirTargets) {
  for (const double kappa : {0.0, 0.1, 1.0}) {
    Check({.huber_kappa = kappa}, 10, 201, 8, {.spread = 1e3});
    Check({.huber_kappa = kappa}, 10, 51, 8, {.offset = 1e3, .spread = 0.1});
  }
}

TEST_F(LossKernelsTest, AnyNumberOfQuantiles) {
  for (const int outputs : {2, 31, 32, 33, 64, 127, 224, 255, 256, 257, 512, 1000}) {
    Check({.huber_kappa = 0.1}, 2, outputs, 3);
    Check({.huber_kappa = 0}, 2, outputs, 3);
  }
}

// A quantile or a target that is not finite affects only its own row.
TEST_F(LossKernelsTest, ARowThatIsNotFiniteShows) {
  const Size size{.members = 3, .outputs = 201, .batch = 4};
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr int kRow = 7;  // sample 2, member 1
  for (const double kappa : {0.0, 1.0}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
      for (const bool in_target : {false, true}) {
        SCOPED_TRACE(testing::Message() << kappa << " " << bad << " " << in_target);
        Inputs inputs(size, {});
        inputs.masks.assign(size.batch, 7);
        (in_target ? inputs.target_parts : inputs.online_parts)[kRow * size.outputs + 100] = bad;
        OnDevice gpu({.huber_kappa = kappa}, size, inputs);
        LaunchLoss(gpu.call, nullptr);
        const std::vector<MemberLoss> found = FromGpu(gpu.found);
        const std::vector<float> d_out = FromGpu(gpu.d_out);
        for (int row = 0; row < size.batch * size.members; ++row) {
          EXPECT_EQ(std::isfinite(found[row].loss), row != kRow) << row;
          EXPECT_EQ(std::isfinite(found[row].share), row != kRow) << row;
          for (int i = 0; i < size.outputs; ++i) {
            ASSERT_EQ(std::isfinite(d_out[row * size.outputs + i]), row != kRow) << row << " " << i;
          }
        }
      }
    }
  }
}

TEST_F(LossKernelsTest, ALargeOffsetCostsNoAccuracy) { Check({}, 10, 51, 8, {.offset = 1e3}); }

TEST_F(LossKernelsTest, CategoricalHeads) {
  for (const CategoricalUncertainty form :
       {CategoricalUncertainty::kQuantiles, CategoricalUncertainty::kTotalVariance,
        CategoricalUncertainty::kAuthors}) {
    for (const TdErrorKind priority : {TdErrorKind::kMeanAbsolute, TdErrorKind::kLoss}) {
      for (const int atoms : {2, 51, 300}) {
        const LossSpec loss{
            .head = HeadKind::kCategorical,
            .support = {.low = -10, .high = 10, .atoms = static_cast<std::size_t>(atoms)},
            .td_priority = priority,
            .categorical_uncertainty = form};
        Check(loss, 1, atoms, 1);
        Check(loss, 8, atoms, 31);
      }
    }
  }
}

}  // namespace
}  // namespace uper::cuda
