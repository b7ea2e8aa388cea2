// Learner updates must not allocate: counts every use of operator new in this program.
#include <gtest/gtest.h>

#include <vector>

#include "uper/base/replace_new_for_tests.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/cpu/cpu_network.h"
#include "uper/nn/cpu/cpu_optimizer.h"

namespace uper::cpu {
namespace {

TEST(NnAllocationTest, TheCounterCounts) {
  EXPECT_GT(AllocationsDuring([] { std::vector<int>(100).front() = 1; }), 0u);
}

TEST(NnAllocationTest, AnUpdateAllocatesNothing) {
  constexpr int kBatch = 32;
  NetworkSpec spec = NatureNetwork({.actions = 4, .members = 3, .outputs = 21});
  spec.input.height = spec.input.width = 44;
  spec.dense = {50};
  ThreadPool pool(2);
  CpuNetwork network(spec, {.max_batch = kBatch}, pool);
  FloatBuffer online(network.layout().size()), target(online.size()), gradient(online.size());
  FloatBuffer m(online.size()), v(online.size());
  HeadMeanWeights mean_weights(spec);
  const std::vector<std::byte> observations(std::size_t{1} * kBatch * spec.observation_size());
  const std::vector<int> actions(kBatch, 1), member_actions(kBatch * 3, 2);
  std::vector<float> out(kBatch * 63, 1), all(kBatch * 63 * 4), q(kBatch * 12), mean(kBatch * 4);
  const OptimizerBuffers buffers{online.span(), gradient.span(), m.span(), v.span()};
  const auto update = [&] {
    network.Forward(0, online.span(), observations, kBatch);
    network.Forward(1, target.span(), observations, kBatch);
    network.ComputeHeadMeanWeights(target.span(), mean_weights);
    network.HeadMemberMeans(1, mean_weights, q);
    network.HeadEnsembleMean(1, mean_weights, mean);
    network.HeadPerMember(1, target.span(), member_actions, out);
    network.HeadAll(1, target.span(), all);
    network.HeadTaken(0, online.span(), actions, out);
    const double squares = network.Backward(0, online.span(), actions, out, gradient.span());
    network.Update(0, out, OptimizerUpdate(AdamOptions{}, 1, ClipScale(squares, 10)), buffers);
    network.Update(0, out, OptimizerUpdate(RmsPropOptions{}, 1), buffers);
    network.HeadGradient(0, actions, out, gradient.span());
    CopyParameters(online.span(), target.span(), pool);
  };
  EXPECT_EQ(AllocationsDuring(update), 0u);
}

// A learner of an ensemble, double-Q or not, with data of zeros.
void ExpectLearnerAllocatesNothing(HeadKind head, bool double_q) {
  constexpr int kBatch = 8;
  const int outputs = head == HeadKind::kScalar ? 1 : 11;
  LearnerSpec spec{
      .network = MinatarNetwork(4, {.actions = 3, .members = 4, .outputs = outputs}),
      .loss = {.head = head, .double_q = double_q, .support = {.atoms = std::size_t{11}}},
      .max_global_norm = 10,
      .batch = kBatch};
  ThreadPool pool(2);
  CpuLearner learner(spec, pool);
  const std::vector<std::byte> observations(std::size_t{kBatch} * spec.network.observation_size());
  const std::vector<std::int32_t> actions(kBatch, 1);
  const std::vector<float> ones(kBatch, 1);
  const std::vector<std::uint64_t> masks(kBatch, 5);
  std::vector<float> q(kBatch * 3);
  const auto update = [&] {
    learner.Update({.s_tm1 = observations,
                    .s_t = observations,
                    .a_tm1 = actions,
                    .r_t = ones,
                    .discount_t = ones,
                    .weights = ones,
                    .masks = masks});
    learner.ActionValues(observations, kBatch, q);
    learner.CopyTarget();
  };
  EXPECT_EQ(AllocationsDuring(update), 0u);
}

TEST(NnAllocationTest, ALearnerAllocatesNothing) {
  for (const HeadKind head : {HeadKind::kScalar, HeadKind::kQuantile, HeadKind::kCategorical}) {
    ExpectLearnerAllocatesNothing(head, false);
    ExpectLearnerAllocatesNothing(head, true);
  }
}

}  // namespace
}  // namespace uper::cpu
