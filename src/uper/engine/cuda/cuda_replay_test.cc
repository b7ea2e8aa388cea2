#include <cmath>
#include <ostream>

#include "uper/engine/cuda/cuda_replay_for_tests.h"

namespace uper::cuda {
namespace {

using CudaReplayTest = GpuTest;

// The draws, probabilities and weights of a buffer that draws with the same numbers.
struct HostDraws {
  std::vector<std::uint64_t> ids = std::vector<std::uint64_t>(kBatch);
  std::vector<double> probabilities = std::vector<double>(kBatch);
  std::vector<float> weights = std::vector<float>(kBatch);
};
HostDraws DrawOnHost(const ReplayBuffer& buffer, const ReplayBufferOptions& options,
                     const WeightOptions& weights) {
  ReplayBuffer copy(options, RandomStream(3, "draws"));
  copy.SetState(buffer.GetState());
  HostDraws draws;
  copy.Sample(weights,
              {.ids = draws.ids, .probabilities = draws.probabilities, .weights = draws.weights});
  return draws;
}

struct Shape {
  std::size_t capacity;
  int stack_depth;
};
void PrintTo(const Shape& shape, std::ostream* out) {
  *out << "capacity " << shape.capacity << ", stack " << shape.stack_depth;
}

class CudaReplayShapes : public CudaReplayTest, public testing::WithParamInterface<Shape> {};

// Exponents of 1 and 0 need no powers, so every bit equals the host's.
TEST_P(CudaReplayShapes, DrawsAreTheHostsBitForBit) {
  const auto [capacity, stack_depth] = GetParam();
  for (const auto normalization : {WeightNormalization::kBatchMax, WeightNormalization::kNone,
                                   WeightNormalization::kBufferMax}) {
    DeviceReplaySpec spec = SpecOf(capacity, stack_depth);
    spec.normalization = normalization;
    spec.largest_priority_decay = 0.999;
    Pair pair(spec, std::max(stack_depth, 1));
    const ReplayBufferOptions options{
        .capacity = capacity,
        .selection = {.priority_exponent = spec.priority_exponent, .uniform_mix = spec.uniform_mix},
        .largest_priority_decay = spec.largest_priority_decay};
    RandomStream choices(5, "choices");
    for (int round = 0; round < 400; ++round) {
      pair.Add(1 + choices.UniformInt(std::min<std::size_t>(capacity, 9)));
      if (choices.Bernoulli(0.1)) {
        pair.EvictBefore(pair.store.first_id() + choices.UniformInt(pair.buffer.size()));
      }
      pair.MirrorHost();
      const double beta = round % 2;
      const HostDraws expected = DrawOnHost(
          pair.buffer, options, {.importance_exponent = beta, .normalization = normalization});
      const DeviceUpdateReport report = pair.Update(beta);
      ASSERT_TRUE(report.finite);
      ASSERT_TRUE(std::ranges::equal(report.ids, expected.ids)) << "round " << round;
      ASSERT_TRUE(std::ranges::equal(pair.replay->ReportedProbabilities(), expected.probabilities));
      ASSERT_TRUE(std::ranges::equal(report.weights, expected.weights));
      std::vector<double> values;
      for (std::size_t j = 0; j < kBatch; ++j) {
        ASSERT_EQ(report.noisy[j], report.ids[j] % 4 == 0 ? 1 : 0);
        const Priority priority =
            ComputePriority(spec.rule, {.td_error = report.td_error[j]}, spec.limits);
        ASSERT_EQ(report.priorities[j].value, priority.value);
        values.push_back(priority.value);
      }
      pair.buffer.SetPriorities(report.ids, values);
      if (round % 50 != 0) continue;
      std::vector<float> priorities(pair.buffer.size());
      double largest = 0;
      pair.replay->GetPriorities(priorities, largest);
      ASSERT_EQ(priorities, pair.buffer.GetState().selector.priorities);
      ASSERT_EQ(largest, pair.buffer.largest_priority());
      if (round % 100 == 0) pair.replay->SetPriorities(priorities, largest);  // rebuilds the tree
    }
  }
}

// Each update starts from the CPU's parameters and must equal the CPU's update. So the gathered
// data equal those of the host.
TEST_P(CudaReplayShapes, UpdatesAreThoseOfTheHostsBatches) {
  const auto [capacity, stack_depth] = GetParam();
  Pair pair(SpecOf(capacity, stack_depth), std::max(stack_depth, 1));
  for (int round = 0; round < 60; ++round) {
    pair.Add(3);
    pair.MirrorHost();
    const DeviceUpdateReport report = pair.Update(0.5);
    const Store::Batch batch = pair.store.Gather(report.ids);
    const LearnerOutput output = pair.cpu.Update({.s_tm1 = batch.s_tm1,
                                                  .s_t = batch.s_t,
                                                  .a_tm1 = batch.a_tm1,
                                                  .r_t = batch.r_t,
                                                  .discount_t = batch.discount_t,
                                                  .weights = report.weights,
                                                  .masks = batch.masks});
    ASSERT_NEAR(report.loss, output.loss, 1e-5 * std::abs(output.loss)) << "round " << round;
    ASSERT_NEAR(report.gradient_norm, output.gradient_norm, 1e-5 * output.gradient_norm);
    for (std::size_t j = 0; j < kBatch; ++j) {
      ASSERT_NEAR(report.td_error[j], output.td_error[j], 1e-5 * (1 + output.td_error[j]));
      ASSERT_NEAR(report.uncertainty[j].epistemic_delta, output.uncertainty[j].epistemic_delta,
                  1e-5 * (1 + output.uncertainty[j].epistemic_delta));
    }
    const LearnerState a = pair.cpu.State(), b = pair.gpu.State();
    for (std::size_t i = 0; i < a.online.size(); ++i) {
      ASSERT_NEAR(a.online[i], b.online[i], 1e-5) << "parameter " << i;
    }
    std::ranges::copy(a.online, b.online.begin());
    std::ranges::copy(a.target, b.target.begin());
    std::ranges::copy(a.first_moment, b.first_moment.begin());
    std::ranges::copy(a.second_moment, b.second_moment.begin());
    pair.gpu.CommitState(a.updates);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaReplayShapes,
                         testing::Values(Shape{1, 0}, Shape{9, 0}, Shape{64, 3}, Shape{65, 1},
                                         Shape{700, 4}, Shape{5000, 0}));

// Masses are powers, which the GPU rounds in its own way: only the last few bits may differ.
TEST_F(CudaReplayTest, PowersAreThoseOfTheHostToTheLastBits) {
  DeviceReplaySpec spec = SpecOf(500, 0);
  spec.priority_exponent = 0.6;
  Pair pair(spec, 1);
  pair.Add(500);
  pair.MirrorHost();
  RandomStream stream(9, "priorities");
  std::vector<float> priorities(500);
  for (float& p : priorities) p = static_cast<float>(std::exp(20 * stream.Uniform() - 15));
  pair.replay->SetPriorities(priorities, 200);
  pair.buffer.LoadDevicePriorities(priorities, 200);
  for (int round = 0; round < 20; ++round) {
    const DeviceUpdateReport report = pair.Update(0.4);
    for (std::size_t j = 0; j < kBatch; ++j) {
      const double expected = pair.buffer.Probability(report.ids[j]);
      ASSERT_NEAR(pair.replay->ReportedProbabilities()[j] / expected, 1, 1e-14);
    }
    pair.replay->SetPriorities(priorities, 200);
  }
}

TEST_F(CudaReplayTest, TakesGivenDraws) {
  DeviceReplaySpec spec = SpecOf(40, 0);
  spec.samples_on_device = false;
  spec.rule = PriorityRule::kUniform;
  Pair pair(spec, 1);
  pair.Add(60);
  pair.MirrorHost();
  const std::vector<std::uint64_t> ids = {59, 20, 21, 40, 41, 40, 33, 58};
  const std::vector<float> weights(kBatch, 0.5F);
  QueueOne(*pair.replay, {.ids = ids, .weights = weights});
  const DeviceUpdateReport report = *pair.replay->AwaitReport();
  EXPECT_TRUE(std::ranges::equal(report.ids, ids));
  EXPECT_TRUE(std::ranges::equal(report.weights, weights));
  const Store::Batch batch = pair.store.Gather(ids);
  const LearnerOutput output = pair.cpu.Update({.s_tm1 = batch.s_tm1,
                                                .s_t = batch.s_t,
                                                .a_tm1 = batch.a_tm1,
                                                .r_t = batch.r_t,
                                                .discount_t = batch.discount_t,
                                                .weights = weights,
                                                .masks = batch.masks});
  EXPECT_NEAR(report.loss, output.loss, 1e-5 * std::abs(output.loss));
}

TEST_F(CudaReplayTest, ReportsAnUpdateThatIsNotFinite) {
  Pair pair(SpecOf(40, 0), 1);
  pair.Add(30);
  pair.MirrorHost();
  const LearnerState state = pair.gpu.State();
  std::ranges::fill(state.online, std::numeric_limits<float>::infinity());
  pair.gpu.CommitState(0);
  std::vector<float> before(30), after(30);
  double largest = 0;
  pair.replay->GetPriorities(before, largest);
  const DeviceUpdateReport report = pair.Update(0.5);
  EXPECT_FALSE(report.finite);
  pair.replay->GetPriorities(after, largest);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace uper::cuda
