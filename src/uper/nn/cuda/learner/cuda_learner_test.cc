#include "uper/nn/cuda/learner/cuda_learner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "uper/base/error.h"
#include "uper/base/threads/thread_pool.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/cuda/learner/cuda_agents_for_tests.h"

namespace uper::cuda {
namespace {

class CudaLearnerTest : public GpuTest {};

TEST_F(CudaLearnerTest, RepeatsBitForBit) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    const std::vector<double> first = Trained(agent.spec);
    for (const double number : first) ASSERT_TRUE(std::isfinite(number));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Trained(agent.spec), first);
  }
}

TEST_F(CudaLearnerTest, OtherPrecisionsRepeatBitForBitAndActAlikeForAnyCount) {
  for (const Precision precision : {Precision::kTf32, Precision::kTf32x3}) {
    for (const Agent& agent : AgentsIn(precision)) {
      SCOPED_TRACE(testing::Message() << agent.name << " precision " << int(precision));
      LearnerSpec fp32 = agent.spec;
      fp32.precision = Precision::kFp32;
      const std::vector<double> first = Trained(agent.spec);
      for (const double number : first) ASSERT_TRUE(std::isfinite(number));
      for (int i = 0; i < 2; ++i) EXPECT_EQ(Trained(agent.spec), first);
      EXPECT_NE(Trained(fp32), first);

      CudaLearner learner(agent.spec);
      Initialize(learner);
      const Data data(agent.spec, "batch");
      const std::size_t bytes = data.s_tm1.size() / agent.spec.batch;
      std::vector<float> all(std::size_t{1} * agent.spec.batch * agent.spec.network.actions);
      learner.ActionValues(data.s_tm1, agent.spec.batch, all);
      for (const int count : {1, std::min(16, agent.spec.batch)}) {
        std::vector<float> some(std::size_t{1} * count * agent.spec.network.actions);
        learner.ActionValues(std::span(data.s_tm1).first(count * bytes), count, some);
        EXPECT_TRUE(SameBits(some, std::span(all).first(some.size()))) << count;
      }
    }
  }
}

TEST_F(CudaLearnerTest, ActionValuesAreThoseOfTheCpuForAnyCount) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    const LearnerSpec& spec = agent.spec;
    ThreadPool pool(2);
    cpu::CpuLearner cpu(spec, pool);
    CudaLearner gpu(spec);
    Initialize(cpu);
    const Data data(spec, "batch");
    for (int round = 0; round < 2; ++round) {  // the second round is after an update
      CopyState(cpu, gpu);
      if (round == 1) {
        cpu.Update(data.View());
        gpu.Update(data.View());
      }
      const std::size_t bytes = data.s_tm1.size() / spec.batch;
      std::vector<float> all(std::size_t{1} * spec.batch * spec.network.actions);
      gpu.ActionValues(data.s_tm1, spec.batch, all);
      std::vector<float> expected(all.size());
      cpu.ActionValues(data.s_tm1, spec.batch, expected);
      EXPECT_LT(RelativeError(all, expected), 1e-5);
      for (const int count : {1, std::min(16, spec.batch)}) {
        std::vector<float> some(std::size_t{1} * count * spec.network.actions);
        gpu.ActionValues(std::span(data.s_tm1).first(count * bytes), count, some);
        EXPECT_TRUE(SameBits(some, std::span(all).first(some.size()))) << count;
      }
    }
  }
}

TEST_F(CudaLearnerTest, ActingDoesNotDisturbLearning) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner acting(agent.spec), quiet(agent.spec);
    Initialize(acting);
    Initialize(quiet);
    std::vector<float> q(std::size_t{1} * agent.spec.batch * agent.spec.network.actions);
    for (int i = 0; i < 3; ++i) {
      const Data data(agent.spec, "batch " + std::to_string(i));
      acting.ActionValues(data.s_t, agent.spec.batch, q);
      EXPECT_EQ(Statistics(acting.Update(data.View())), Statistics(quiet.Update(data.View())));
    }
    EXPECT_TRUE(SameBits(Numbers(acting), Numbers(quiet)));
  }
}

TEST_F(CudaLearnerTest, CopyTargetCopiesAndIsUsed) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner copied(agent.spec), written(agent.spec);
    Initialize(copied);
    Initialize(written);
    const Data data(agent.spec, "batch");
    copied.Update(data.View());
    CopyState(copied, written);
    copied.CopyTarget();
    EXPECT_TRUE(SameBits(copied.State().target, copied.State().online));
    const LearnerState state = written.State();
    std::copy(state.online.begin(), state.online.end(), state.target.begin());
    written.CommitState(1);
    EXPECT_LT(RelativeError(Statistics(copied.Update(data.View())),
                            Statistics(written.Update(data.View()))),
              1e-6);
    EXPECT_LT(RelativeError(Numbers(copied), Numbers(written)), 1e-6);
  }
}

TEST_F(CudaLearnerTest, AStateThatIsWrittenBackGoesOnTheSame) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner first(agent.spec), second(agent.spec);
    Initialize(first);
    first.Update(Data(agent.spec, "a").View());
    CopyState(first, second);
    CopyState(first, first);
    const Data data(agent.spec, "b");
    EXPECT_EQ(Statistics(first.Update(data.View())), Statistics(second.Update(data.View())));
    EXPECT_TRUE(SameBits(Numbers(first), Numbers(second)));
  }
}

TEST_F(CudaLearnerTest, WhatIsNotFiniteStopsTheUpdateAndChangesNothing) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const bool reward : {true, false}) {
        CudaLearner learner(agent.spec), untouched(agent.spec);
        Initialize(learner);
        Initialize(untouched);
        const std::vector<float> before = Numbers(learner);
        Data bad(agent.spec, "batch");
        bad.masks.assign(bad.masks.size(), ~std::uint64_t{0});
        (reward ? bad.rewards : bad.weights)[0] = value;
        try {
          learner.Update(bad.View());
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kNumeric) << error.what();
        }
        EXPECT_TRUE(SameBits(Numbers(learner), before));
        const Data good(agent.spec, "good");
        EXPECT_EQ(Statistics(learner.Update(good.View())),
                  Statistics(untouched.Update(good.View())));
        EXPECT_TRUE(SameBits(Numbers(learner), Numbers(untouched)));
      }
    }
  }
}

TEST_F(CudaLearnerTest, WithoutAnyMemberNothingIsLearned) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner learner(agent.spec);
    Initialize(learner);
    Data data(agent.spec, "batch");
    data.masks.assign(data.masks.size(), 0);
    const std::vector<float> before(learner.State().online.begin(), learner.State().online.end());
    const LearnerOutput output = learner.Update(data.View());
    EXPECT_EQ(output.loss, 0);
    EXPECT_EQ(output.gradient_norm, 0);
    EXPECT_GT(output.td_error[0], 0);
    EXPECT_TRUE(SameBits(learner.State().online, before));
  }
}

TEST_F(CudaLearnerTest, BatchesThatDoNotFitAreRefused) {
  const LearnerSpec spec = Agents()[0].spec;
  CudaLearner learner(spec);
  Data data(spec, "batch");
  data.actions[0] = spec.network.actions;
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.actions[0] = 0;
  data.s_t.pop_back();
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.s_t.push_back({});
  EXPECT_NO_THROW(learner.Update(data.View()));
}

TEST_F(CudaLearnerTest, TooLargeANetworkIsAResourceError) {
  // 480 GB of activations.
  const LearnerSpec spec =
      SpecOf(MlpNetwork(1, {30000}, {.actions = 2, .members = 1, .outputs = 1}), HeadKind::kScalar,
             4000000);
  try {
    CudaLearner learner(spec);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResources) << error.what();
  }
  CudaLearner small(Agents()[0].spec);  // the GPU still works
  EXPECT_NO_THROW(small.Update(Data(Agents()[0].spec, "batch").View()));
}

}  // namespace
}  // namespace uper::cuda
