#include "uper/nn/cuda/sample_kernels.h"

#include <string>

#include "uper/nn/cpu/sample_step.h"
#include "uper/nn/cuda/test_support.h"
#include "uper/nn/test_data.h"

namespace uper {
namespace {

std::vector<double> Numbers(const Uncertainty& u) {
  return {u.mean,  u.epistemic,  u.aleatoric, u.target_distance_sq, u.epistemic_delta,
          u.total, u.total_delta};
}

// Random samples through both implementations.
void Check(const LossSpec& loss, int members, int outputs, int batch, double offset = 0) {
  SCOPED_TRACE(testing::Message() << "head " << int(loss.head) << " members " << members
                                  << " outputs " << outputs << " batch " << batch << " form "
                                  << int(loss.target_form) << int(loss.td_priority)
                                  << int(loss.categorical_uncertainty));
  const int actions = 3;
  const std::size_t size = std::size_t{1} * batch * members * outputs;
  const std::vector<float> online_parts = RandomFloats(kHeadParts * size, "online");
  const std::vector<float> target_parts = RandomFloats(kHeadParts * size, "target");
  std::vector<float> bias = RandomFloats(std::size_t{1} * actions * members * outputs, "bias");
  for (float& value : bias) value += static_cast<float>(offset);
  const std::vector<int> taken = RandomInts(batch, actions, "taken");
  const std::vector<int> greedy = RandomInts(std::size_t{1} * batch * members, actions, "greedy");
  const std::vector<float> rewards = RandomFloats(batch, "rewards");
  std::vector<float> discounts(batch, 0.97F), weights = RandomFloats(batch, "weights");
  for (float& weight : weights) weight = std::abs(weight);
  discounts[0] = 0;
  std::vector<std::uint64_t> masks;
  for (const int mask : RandomInts(batch, 1 << 30, "masks")) masks.push_back(mask);

  const DeviceBuffer<float> gpu_online = OnGpu(online_parts), gpu_target = OnGpu(target_parts);
  const DeviceBuffer<float> gpu_bias = OnGpu(bias), gpu_rewards = OnGpu(rewards);
  const DeviceBuffer<float> gpu_discounts = OnGpu(discounts), gpu_weights = OnGpu(weights);
  const DeviceBuffer<int> gpu_taken = OnGpu(taken), gpu_greedy = OnGpu(greedy);
  const DeviceBuffer<std::uint64_t> gpu_masks = OnGpu(masks);
  DeviceBuffer<float> online = Poisoned(size), target = Poisoned(size), d_out = Poisoned(size);
  DeviceBuffer<float> quantiles = Poisoned(2 * size);
  DeviceBuffer<MemberFindings> found(std::size_t{1} * batch * members);
  DeviceBuffer<double> td_errors(batch);
  DeviceBuffer<Uncertainty> uncertainty(batch);
  const SampleCall call{
      .loss = loss,
      .shape = {.actions = actions, .members = members, .hidden = 1, .outputs = outputs},
      .batch = batch,
      .online_parts = gpu_online.data(),
      .target_parts = gpu_target.data(),
      .online_bias = gpu_bias.data(),
      .target_bias = gpu_bias.data(),
      .actions = gpu_taken.data(),
      .target_actions = gpu_greedy.data(),
      .r_t = gpu_rewards.data(),
      .discount_t = gpu_discounts.data(),
      .weights = gpu_weights.data(),
      .masks = gpu_masks.data(),
      .online = online.data(),
      .target = target.data(),
      .d_out = d_out.data(),
      .members = found.data()};
  LaunchSamples(call, nullptr);
  LaunchStatistics({.samples = call,
                    .quantiles = quantiles.data(),
                    .td_error = td_errors.data(),
                    .uncertainty = uncertainty.data()},
                   nullptr);

  const std::uint64_t everybody = ~std::uint64_t{0} >> (64 - members);
  int terms = 0;
  for (const std::uint64_t mask : masks) terms += std::popcount(mask & everybody);
  const double scale = loss.sum_members ? 1.0 / batch : 1.0 / std::max(1, terms);
  const EnsembleShape shape{std::size_t(members), std::size_t(outputs)};
  SampleScratch scratch(shape);
  std::vector<double> expected_d, expected_losses, expected_td, expected_statistics;
  for (int b = 0; b < batch; ++b) {
    std::vector<float> z, next, d(members * outputs);
    for (int k = 0; k < members; ++k) {
      for (int m = 0; m < outputs; ++m) {
        const std::size_t at = (std::size_t{1} * b * members + k) * outputs + m;
        float x = bias[(taken[b] * members + k) * outputs + m];
        float y = bias[(greedy[b * members + k] * members + k) * outputs + m];
        for (int part = 0; part < kHeadParts; ++part) {
          x += online_parts[part * size + at];
          y += target_parts[part * size + at];
        }
        z.push_back(x);
        next.push_back(y);
      }
    }
    const SampleOutputs sample = ComputeSample(loss, shape,
                                               {.online = z,
                                                .target = next,
                                                .r_t = rewards[b],
                                                .discount_t = discounts[b],
                                                .weight = weights[b],
                                                .mask = masks[b],
                                                .scale = scale},
                                               scratch, d);
    expected_d.insert(expected_d.end(), d.begin(), d.end());
    expected_losses.push_back(sample.loss);
    expected_td.push_back(sample.td_error);
    for (const double x : Numbers(sample.uncertainty)) expected_statistics.push_back(x);
  }
  std::vector<double> losses(batch), statistics;
  const std::vector<MemberFindings> members_found = FromGpu(found);
  for (int i = 0; i < batch * members; ++i) losses[i / members] += members_found[i].share;
  for (const Uncertainty& u : FromGpu(uncertainty)) {
    for (const double x : Numbers(u)) statistics.push_back(x);
  }
  EXPECT_LT(RelativeError(FromGpu(d_out), expected_d), 1e-6);
  EXPECT_LT(RelativeError(losses, expected_losses), 1e-6);
  EXPECT_LT(RelativeError(FromGpu(td_errors), expected_td), 1e-6);
  // Each kind of statistic by its own size.
  for (int field = 0; field < 7; ++field) {
    std::vector<double> one, expected_one;
    for (int b = 0; b < batch; ++b) {
      one.push_back(statistics[b * 7 + field]);
      expected_one.push_back(expected_statistics[b * 7 + field]);
    }
    EXPECT_LT(RelativeError(one, expected_one), 1e-6) << "field " << field;
  }
}

class SampleKernelsTest : public GpuTest {};

TEST_F(SampleKernelsTest, ScalarHeads) {
  for (const double bound : {0.0, 1.0}) {
    for (const TdPriority priority : {TdPriority::kMeanAbsolute, TdPriority::kLoss}) {
      const LossSpec loss{
          .head = HeadKind::kScalar, .td_gradient_bound = bound, .td_priority = priority};
      Check(loss, 1, 1, 1);
      Check(loss, 1, 1, 32);
      Check(loss, 10, 1, 33);
    }
  }
}

TEST_F(SampleKernelsTest, QuantileHeads) {
  for (const double kappa : {0.0, 1.0}) {
    for (const TargetForm form : {TargetForm::kQuantiles, TargetForm::kScalar}) {
      for (const bool sum_members : {false, true}) {
        LossSpec loss{.huber_kappa = kappa, .sum_members = sum_members, .target_form = form};
        Check(loss, 1, 1, 1);
        Check(loss, 10, 201, 31);
        Check(loss, 3, 300, 5);
        Check(loss, 30, 51, 64);
        loss.td_priority = TdPriority::kLoss;
        Check(loss, 2, 7, 9);
      }
    }
  }
}

TEST_F(SampleKernelsTest, ALargeOffsetCostsNoAccuracy) { Check({}, 10, 51, 8, 1e3); }

TEST_F(SampleKernelsTest, CategoricalHeads) {
  for (const CategoricalUncertainty form :
       {CategoricalUncertainty::kQuantiles, CategoricalUncertainty::kTotalVariance,
        CategoricalUncertainty::kProducts}) {
    for (const TdPriority priority : {TdPriority::kMeanAbsolute, TdPriority::kLoss}) {
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
}  // namespace uper
