#include "uper/nn/cpu/cpu_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "uper/base/error.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/head_values.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

constexpr HeadKind kHeads[] = {HeadKind::kScalar, HeadKind::kQuantile, HeadKind::kCategorical};
constexpr int kBatch = 9;

LearnerSpec SpecOf(HeadKind head) {
  const int outputs = head == HeadKind::kScalar ? 1 : 7;
  LearnerSpec spec{.network = MinatarNetwork(4, {.actions = 5, .members = 3, .outputs = outputs}),
                   .loss = {.head = head, .support = {.low = -2, .high = 3, .atoms = 7}},
                   .max_global_norm = 10,
                   .batch = kBatch};
  if (head == HeadKind::kScalar) spec.optimizer = RmsPropOptions{};
  return spec;
}

using Data = LearnerTestData;

// A copy of the state of a learner.
struct Snapshot {
  explicit Snapshot(CpuLearner& learner) : updates(learner.State().updates) {
    const LearnerState state = learner.State();
    for (const auto part : {state.online, state.target, state.first_moment, state.second_moment}) {
      numbers.insert(numbers.end(), part.begin(), part.end());
    }
  }
  bool operator==(const Snapshot& other) const {
    return updates == other.updates && SameBits(numbers, other.numbers);
  }

  std::int64_t updates;
  std::vector<float> numbers;
};

std::vector<double> Statistics(const LearnerOutput& output) {
  std::vector<double> all = {output.loss, output.gradient_norm};
  all.insert(all.end(), output.td_error.begin(), output.td_error.end());
  for (const Uncertainty& u : output.uncertainty) {
    all.insert(all.end(), {u.mean, u.epistemic, u.aleatoric, u.target_distance_sq,
                           u.epistemic_delta, u.total, u.total_delta});
  }
  return all;
}

// The results of three updates with a target copy in between, and the state after them.
struct Trained {
  Trained(const LearnerSpec& spec, int threads) {
    ThreadPool pool(threads);
    CpuLearner learner(spec, pool);
    Initialize(learner);
    for (int i = 0; i < 3; ++i) {
      const Data data(spec, "batch " + std::to_string(i));
      for (const double number : Statistics(learner.Update(data.View()))) found.push_back(number);
      if (i == 1) learner.CopyTarget();
    }
    state = Snapshot(learner).numbers;
  }
  bool operator==(const Trained& other) const {
    return found == other.found && SameBits(state, other.state);
  }

  std::vector<double> found;
  std::vector<float> state;
};

TEST(CpuLearnerTest, SameBitsForAnyNumberOfThreadsAndInstructionSet) {
  for (const HeadKind head : kHeads) {
    for (const bool double_q : {false, true}) {
      LearnerSpec spec = SpecOf(head);
      spec.loss.double_q = double_q;
      const Trained one(spec, 1);
      for (const double number : one.found) ASSERT_TRUE(std::isfinite(number));
      EXPECT_TRUE(one == Trained(spec, 2));
      EXPECT_TRUE(one == Trained(spec, 3));
      for (const std::int64_t target : RunnableSimdTargets()) {
        UseSimdTarget(target);
        EXPECT_TRUE(one == Trained(spec, 2)) << SimdTargetName();
      }
      UseSimdTarget(0);
    }
  }
}

TEST(CpuLearnerTest, AnUpdateMovesTheOnlineNetworkOnly) {
  for (const HeadKind head : kHeads) {
    const LearnerSpec spec = SpecOf(head);
    ThreadPool pool(2);
    CpuLearner learner(spec, pool);
    Initialize(learner);
    const LearnerState state = learner.State();
    const std::vector<float> online(state.online.begin(), state.online.end());
    const std::vector<float> target(state.target.begin(), state.target.end());
    const LearnerOutput output = learner.Update(Data(spec, "batch").View());
    EXPECT_FALSE(SameBits(state.online, online));
    EXPECT_TRUE(SameBits(state.target, target));
    EXPECT_EQ(learner.State().updates, 1);
    double squares = 0;
    for (const float g : learner.gradient()) squares += double{g} * double{g};
    EXPECT_NEAR(output.gradient_norm, std::sqrt(squares), 1e-7 * output.gradient_norm);
    EXPECT_EQ(output.td_error.size(), std::size_t{kBatch});
    EXPECT_EQ(output.uncertainty.size(), std::size_t{kBatch});
  }
}

TEST(CpuLearnerTest, LargeGradientsAreScaledDown) {
  LearnerSpec spec = SpecOf(HeadKind::kScalar);  // RMSProp with a large epsilon: step ~ gradient
  spec.optimizer = RmsPropOptions{.learning_rate = 1, .epsilon = 1e6};
  const auto change_and_norm = [&](double max_norm) {
    spec.max_global_norm = max_norm;
    ThreadPool pool(1);
    CpuLearner learner(spec, pool);
    Initialize(learner);
    const std::vector<float> before(learner.State().online.begin(), learner.State().online.end());
    const double norm = learner.Update(Data(spec, "batch").View()).gradient_norm;
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double change = double{learner.State().online[i]} - double{before[i]};
      squares += change * change;
    }
    return std::pair(std::sqrt(squares), norm);
  };
  const auto [free_change, norm] = change_and_norm(0);
  const auto [clipped_change, same_norm] = change_and_norm(norm / 4);
  EXPECT_EQ(norm, same_norm);  // reported before clipping
  EXPECT_NEAR(clipped_change, free_change / 4, 1e-3 * free_change);
}

TEST(CpuLearnerTest, WithoutAnyMemberNothingIsLearned) {
  for (const HeadKind head : kHeads) {
    const LearnerSpec spec = SpecOf(head);
    ThreadPool pool(2);
    CpuLearner learner(spec, pool);
    Initialize(learner);
    Data data(spec, "batch");
    std::fill(data.masks.begin(), data.masks.end(), ~std::uint64_t{7});  // bits of no member
    const std::vector<float> before(learner.State().online.begin(), learner.State().online.end());
    const LearnerOutput output = learner.Update(data.View());
    EXPECT_EQ(output.loss, 0);
    EXPECT_EQ(output.gradient_norm, 0);
    EXPECT_GT(output.td_error[0], 0);
    EXPECT_TRUE(SameBits(learner.State().online, before));
  }
}

TEST(CpuLearnerTest, TheMeanIsOverUnmaskedMembers) {
  for (const HeadKind head : kHeads) {
    LearnerSpec spec = SpecOf(head);
    Data data(spec, "batch");
    std::fill(data.masks.begin(), data.masks.end(), 0);
    data.masks[3] = 5;
    const auto loss = [&](MemberWeighting weighting) {
      spec.loss.member_weighting = weighting;
      ThreadPool pool(1);
      CpuLearner learner(spec, pool);
      Initialize(learner);
      return learner.Update(data.View()).loss;
    };
    const double mean = loss(MemberWeighting::kMean);
    EXPECT_GT(mean, 0);
    // The mean divides by two terms, the sum by the batch.
    EXPECT_NEAR(mean * 2, loss(MemberWeighting::kSum) * kBatch, 1e-9);
  }
}

// After an update that must fail, the learner has the same state and continues as before.
void ExpectNumericError(const LearnerSpec& spec, const Data& bad) {
  ThreadPool pool(2);
  CpuLearner learner(spec, pool), untouched(spec, pool);
  Initialize(learner);
  Initialize(untouched);
  const Snapshot before(learner);
  try {
    learner.Update(bad.View());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumeric) << error.what();
  }
  EXPECT_TRUE(Snapshot(learner) == before);
  const Data good(spec, "good");
  EXPECT_EQ(Statistics(learner.Update(good.View())), Statistics(untouched.Update(good.View())));
  EXPECT_TRUE(Snapshot(learner) == Snapshot(untouched));
}

TEST(CpuLearnerTest, WhatIsNotFiniteStopsTheUpdateAndChangesNothing) {
  for (const HeadKind head : kHeads) {
    const LearnerSpec spec = SpecOf(head);
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Data reward(spec, "batch");
      reward.masks[2] = 7;
      reward.rewards[2] = value;
      ExpectNumericError(spec, reward);
      Data weight(spec, "batch");
      weight.masks[4] = 7;
      weight.weights[4] = value;
      ExpectNumericError(spec, weight);
    }
  }
}

TEST(CpuLearnerTest, APoisonedNetworkIsNoticed) {
  for (const HeadKind head : kHeads) {
    const LearnerSpec spec = SpecOf(head);
    ThreadPool pool(1);
    CpuLearner learner(spec, pool);
    Initialize(learner);
    learner.State().online[0] = std::numeric_limits<float>::quiet_NaN();
    learner.CommitState(0);
    EXPECT_THROW(learner.Update(Data(spec, "batch").View()), Error);
  }
}

TEST(CpuLearnerTest, CopyTargetCopiesAndIsUsed) {
  for (const HeadKind head : kHeads) {
    const LearnerSpec spec = SpecOf(head);
    ThreadPool pool(2);
    CpuLearner copied(spec, pool), written(spec, pool);
    Initialize(copied);
    Initialize(written);
    copied.CopyTarget();
    EXPECT_TRUE(SameBits(copied.State().target, copied.State().online));
    std::copy(written.State().online.begin(), written.State().online.end(),
              written.State().target.begin());
    written.CommitState(0);
    const Data data(spec, "batch");
    EXPECT_EQ(Statistics(copied.Update(data.View())), Statistics(written.Update(data.View())));
    EXPECT_TRUE(Snapshot(copied) == Snapshot(written));
  }
}

TEST(CpuLearnerTest, AStateThatIsWrittenBackGoesOnTheSame) {
  for (const HeadKind head : kHeads) {
    const LearnerSpec spec = SpecOf(head);
    ThreadPool pool(2);
    CpuLearner first(spec, pool), second(spec, pool);
    Initialize(first);
    first.Update(Data(spec, "a").View());
    const LearnerState from = first.State(), to = second.State();
    std::copy(from.online.begin(), from.online.end(), to.online.begin());
    std::copy(from.target.begin(), from.target.end(), to.target.begin());
    std::copy(from.first_moment.begin(), from.first_moment.end(), to.first_moment.begin());
    std::copy(from.second_moment.begin(), from.second_moment.end(), to.second_moment.begin());
    second.CommitState(from.updates);
    const Data data(spec, "b");
    EXPECT_EQ(Statistics(first.Update(data.View())), Statistics(second.Update(data.View())));
    EXPECT_TRUE(Snapshot(first) == Snapshot(second));
  }
}

// q [count, action] from all outputs: the mean over the values of the members.
std::vector<double> ValuesByHand(CpuLearner& learner, const Data& data, int count) {
  const NetworkSpec& spec = learner.spec().network;
  ThreadPool pool(1);
  CpuNetwork network(spec, {.max_batch = count, .passes = 1}, pool);
  const std::size_t bytes = std::size_t{1} * count * spec.observation_size();
  network.Forward(0, learner.State().online, std::span(data.s_tm1).first(bytes), count);
  const std::size_t blocks = std::size_t{1} * count * spec.actions * spec.members;
  std::vector<float> all(blocks * spec.outputs);
  network.HeadAll(0, learner.State().online, all);
  std::vector<double> q(count * spec.actions);
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto outputs = std::span(all).subspan(block * spec.outputs, spec.outputs);
    q[block / spec.members] += MemberValue(learner.spec().loss, outputs) / spec.members;
  }
  return q;
}

TEST(CpuLearnerTest, ActionValuesAreMeansOverMembers) {
  for (const HeadKind head : kHeads) {
    for (const bool separate : {false, true}) {
      LearnerSpec spec = SpecOf(head);
      spec.network.separate_hidden = separate;
      ThreadPool pool(2);
      CpuLearner learner(spec, pool);
      Initialize(learner);
      const Data data(spec, "batch");
      for (int round = 0; round < 2; ++round) {  // also after an update
        for (const int count : {1, 4, kBatch}) {
          std::vector<float> q(count * spec.network.actions);
          const std::size_t bytes = std::size_t{1} * count * spec.network.observation_size();
          learner.ActionValues(std::span(data.s_tm1).first(bytes), count, q);
          EXPECT_LT(RelativeError(q, ValuesByHand(learner, data, count)), 1e-5);
        }
        learner.Update(data.View());
      }
    }
  }
}

TEST(CpuLearnerTest, ActingDoesNotDisturbLearning) {
  for (const HeadKind head : kHeads) {
    LearnerSpec spec = SpecOf(head);
    spec.loss.double_q = true;
    ThreadPool pool(2);
    CpuLearner acting(spec, pool), quiet(spec, pool);
    Initialize(acting);
    Initialize(quiet);
    std::vector<float> q(kBatch * spec.network.actions);
    for (int i = 0; i < 3; ++i) {
      const Data data(spec, "batch " + std::to_string(i));
      acting.ActionValues(data.s_t, kBatch, q);
      EXPECT_EQ(Statistics(acting.Update(data.View())), Statistics(quiet.Update(data.View())));
    }
    EXPECT_TRUE(Snapshot(acting) == Snapshot(quiet));
  }
}

TEST(CpuLearnerTest, TargetRulesAgreeForOneMemberAndDifferForThree) {
  const auto loss = [](int members, TargetRule rule, bool double_q) {
    LearnerSpec spec = SpecOf(HeadKind::kQuantile);
    spec.network.members = members;
    spec.loss.target_rule = rule;
    spec.loss.double_q = double_q;
    ThreadPool pool(1);
    CpuLearner learner(spec, pool);
    Initialize(learner);
    Data data(spec, "batch");
    std::fill(data.masks.begin(), data.masks.end(), 7);
    return learner.Update(data.View()).loss;
  };
  EXPECT_EQ(loss(1, TargetRule::kPerMember, false), loss(1, TargetRule::kEnsemble, false));
  EXPECT_NE(loss(3, TargetRule::kPerMember, false), loss(3, TargetRule::kEnsemble, false));
  EXPECT_NE(loss(3, TargetRule::kPerMember, false), loss(3, TargetRule::kPerMember, true));
}

TEST(CpuLearnerTest, OtherPrecisionsAreRefused) {
  ThreadPool pool(1);
  LearnerSpec spec{.network = MlpNetwork(4, {8}, {.actions = 2, .members = 1, .outputs = 3})};
  EXPECT_NO_THROW(CpuLearner(spec, pool));
  for (const Precision precision : {Precision::kTf32, Precision::kTf32x3}) {
    spec.precision = precision;
    try {
      CpuLearner learner(spec, pool);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
}

TEST(CpuLearnerTest, BatchesThatDoNotFitAreRefused) {
  const LearnerSpec spec = SpecOf(HeadKind::kQuantile);
  ThreadPool pool(1);
  CpuLearner learner(spec, pool);
  Data data(spec, "batch");
  data.actions[0] = 5;
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.actions[0] = -1;
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.actions[0] = 0;
  data.rewards.pop_back();
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.rewards.push_back(0);
  data.s_t.pop_back();
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.s_t.push_back({});
  EXPECT_NO_THROW(learner.Update(data.View()));
  LearnerSpec bad = spec;
  bad.batch = 0;
  EXPECT_THROW(CpuLearner(bad, pool), Error);
}

}  // namespace
}  // namespace uper::cpu
