#include "uper/tabular/q_agent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "uper/base/error.h"

namespace uper {
namespace {

// Priorities of about 1 are stored as float.
constexpr double kStored = 1e-6;

// A step that ends its episode, so that nothing is bootstrapped: delta = reward - Q.
QTransition Last(int state, int action, double reward) {
  return {.s_tm1 = state, .a_tm1 = action, .s_t = 0, .r_t = reward, .discount_t = 0};
}

QAgent MakeAgent(const QAgentOptions& options) {
  return QAgent(3, 2, options, RandomStream(1, "replay draws"));
}

std::int64_t TotalDraws(const QAgent& agent) {
  return std::accumulate(agent.draws().begin(), agent.draws().end(), std::int64_t{0});
}

double Gain(double visits, double variance) {
  return 0.5 * std::log(1 + 1 / std::sqrt(1 + visits) / variance);
}

TEST(QAgentTest, WithoutReplayLearnsOnlineOnly) {
  QAgent agent = MakeAgent({.replay = QReplay::kNone, .steps_between_replays = 1});
  agent.Observe(Last(0, 1, 10));
  EXPECT_DOUBLE_EQ(agent.table().Value(0, 1), 1);      // 0.1 * 10
  EXPECT_DOUBLE_EQ(agent.table().Variance(0, 1), 10);  // 0.1 * 10^2
  EXPECT_EQ(agent.table().Visits(0, 1), 1);
  EXPECT_EQ(TotalDraws(agent), 0);
  EXPECT_EQ(agent.buffer(), nullptr);
}

TEST(QAgentTest, ReplaysFiveUpdatesAfterEveryTenthStep) {
  for (const QReplay replay : {QReplay::kUniform, QReplay::kTdError, QReplay::kInfoGain}) {
    QAgent agent = MakeAgent({.replay = replay});
    for (int step = 1; step <= 40; ++step) {
      agent.Observe(Last(step % 3, 0, 1));
      EXPECT_EQ(TotalDraws(agent), 5 * (step / 10)) << "step " << step;
      EXPECT_EQ(agent.buffer()->size(), static_cast<std::size_t>(step));
    }
    EXPECT_EQ(agent.buffer()->counters().drawn, 20u);
    agent.buffer()->CheckValid();
  }
}

TEST(QAgentTest, ReplayedUpdatesAreTheOnlineOnesAndCountNoVisit) {
  QAgent agent =
      MakeAgent({.replay = QReplay::kUniform, .steps_between_replays = 1, .replay_updates = 2});
  agent.Observe(Last(2, 1, 10));
  // Online 0 -> 1, then twice from memory: 1.9, 2.71.
  EXPECT_DOUBLE_EQ(agent.table().Value(2, 1), 2.71);
  EXPECT_EQ(agent.table().Visits(2, 1), 1);
  EXPECT_EQ(agent.draws()[2 * 2 + 1], 2);
}

TEST(QAgentTest, ForgetsTheOldestBeyondItsCapacity) {
  QAgent agent = MakeAgent({.replay = QReplay::kUniform,
                            .replay_capacity = 2,
                            .steps_between_replays = 3,
                            .replay_updates = 50});
  agent.Observe(Last(0, 0, 1));
  agent.Observe(Last(1, 0, 1));
  agent.Observe(Last(2, 0, 1));
  EXPECT_EQ(agent.buffer()->size(), 2u);
  EXPECT_EQ(agent.draws()[0], 0);
  EXPECT_GT(agent.draws()[2], 0);
  EXPECT_GT(agent.draws()[4], 0);
}

TEST(QAgentTest, TdErrorPriorityIsThatOfTheLatestReplay) {
  QAgent agent = MakeAgent({.replay = QReplay::kTdError,
                            .replay_capacity = 1,
                            .steps_between_replays = 1,
                            .replay_updates = 1});
  agent.Observe(Last(0, 0, -10));
  // Online delta -10 (Q = -1), replayed delta -9: the priority is taken before that update.
  EXPECT_NEAR(agent.buffer()->Priority(0), 9, kStored);
  EXPECT_NEAR(agent.buffer()->largest_priority(), 9, kStored);
  agent.Observe(Last(1, 0, 0));
  EXPECT_EQ(agent.buffer()->Priority(1), 0);
  EXPECT_NEAR(agent.buffer()->largest_priority(), 9, kStored);
}

TEST(QAgentTest, NewItemsEnterWithTheLargestOrWithTheirOwnPriority) {
  QAgentOptions options{.replay = QReplay::kTdError, .replay_updates = 0};
  QAgent largest = MakeAgent(options);
  largest.Observe(Last(0, 0, 10));
  EXPECT_EQ(largest.buffer()->Priority(0), 1);

  options.new_items = NewItemPriority::kCurrent;
  QAgent current = MakeAgent(options);
  current.Observe(Last(0, 0, 10));
  EXPECT_EQ(current.buffer()->Priority(0), 10);
}

TEST(QAgentTest, InfoGainPriorityByHand) {
  QAgentOptions options{
      .replay = QReplay::kInfoGain, .replay_updates = 0, .new_items = NewItemPriority::kCurrent};
  QAgent agent = MakeAgent(options);
  agent.Observe(Last(0, 0, 10));  // C = 1, A = 0.1 * 100
  EXPECT_NEAR(agent.buffer()->Priority(0), Gain(1, 10), kStored);
  agent.Observe(Last(0, 0, 10));  // C = 2, delta = 9, A = 10 + 0.1 * (81 - 10)
  EXPECT_NEAR(agent.buffer()->Priority(1), Gain(2, 17.1), kStored);
  agent.Observe(Last(0, 1, 10));  // another action: C = 1 again
  EXPECT_NEAR(agent.buffer()->Priority(2), Gain(1, 10), kStored);
  EXPECT_NEAR(agent.buffer()->Priority(0), Gain(1, 10), kStored) << "only a replay refreshes";
}

TEST(QAgentTest, InfoGainIsRefreshedWhenReplayed) {
  QAgent agent = MakeAgent({.replay = QReplay::kInfoGain,
                            .replay_capacity = 1,
                            .steps_between_replays = 1,
                            .replay_updates = 1,
                            .new_items = NewItemPriority::kCurrent});
  agent.Observe(Last(0, 0, 10));
  // A = 10 from the step, 17.1 from its replay; the replay is no visit.
  EXPECT_NEAR(agent.buffer()->Priority(0), Gain(1, 17.1), kStored);
}

TEST(QAgentTest, VisitsMayBeCountedByState) {
  QAgent agent = MakeAgent({.replay = QReplay::kInfoGain,
                            .replay_updates = 0,
                            .new_items = NewItemPriority::kCurrent,
                            .visit_count = VisitCount::kState});
  agent.Observe(Last(0, 0, 10));
  agent.Observe(Last(0, 1, 10));
  EXPECT_NEAR(agent.buffer()->Priority(1), Gain(2, 10), kStored);
}

TEST(QAgentTest, FloorKeepsTheGainOfNoiselessPairsFinite) {
  QAgent agent = MakeAgent({.replay = QReplay::kInfoGain,
                            .replay_updates = 0,
                            .new_items = NewItemPriority::kCurrent,
                            .aleatoric_floor = 0.5});
  agent.Observe(Last(0, 0, 0));  // delta = 0, so A = 0
  EXPECT_NEAR(agent.buffer()->Priority(0), Gain(1, 0.5), kStored);
}

TEST(QAgentTest, ExponentMixAndMethodReachTheDraws) {
  QAgentOptions options{.replay = QReplay::kTdError,
                        .replay_updates = 0,
                        .priority_exponent = 0.5,
                        .uniform_mix = 0,
                        .new_items = NewItemPriority::kCurrent};
  const auto probabilities = [](const QAgentOptions& chosen) {
    QAgent agent = MakeAgent(chosen);
    agent.Observe(Last(0, 0, 9));
    agent.Observe(Last(1, 0, 1));
    return std::pair(agent.buffer()->Probability(0), agent.buffer()->Probability(1));
  };
  EXPECT_NEAR(probabilities(options).first, 3.0 / 4, 1e-6);  // sqrt(9) : sqrt(1)
  options.uniform_mix = 0.2;
  EXPECT_NEAR(probabilities(options).first, 0.8 * 3 / 4 + 0.2 / 2, 1e-6);
  options.priority_exponent = 1;
  EXPECT_NEAR(probabilities(options).first, 0.8 * 9 / 10 + 0.2 / 2, 1e-6);
  options.replay = QReplay::kUniform;
  EXPECT_DOUBLE_EQ(probabilities(options).first, 0.5);
}

// The share of greedy actions is 1 - epsilon + epsilon / 2 with two actions. 40,000 draws; the
// tolerance is 4 standard errors, at most 0.01.
TEST(QAgentTest, EpsilonIsTheProbabilityOfAUniformAction) {
  constexpr int kDraws = 40'000;
  for (const double epsilon : {0.0, 0.05, 0.95, 1.0}) {
    QAgent agent = MakeAgent({.epsilon = epsilon});
    agent.Observe(Last(0, 1, 10));  // action 1 is the better one
    RandomStream exploration(1, "exploration");
    int greedy = 0;
    for (int draw = 0; draw < kDraws; ++draw) greedy += agent.Act(0, exploration);
    const double expected = 1 - epsilon / 2;
    EXPECT_NEAR(greedy / double{kDraws}, expected,
                4 * std::sqrt(expected * (1 - expected) / kDraws));
  }
}

TEST(QAgentTest, RefusesOptionsOutOfRange) {
  EXPECT_THROW(MakeAgent({.epsilon = 1.5}), Error);
  EXPECT_THROW(MakeAgent({.epsilon = NAN}), Error);
  EXPECT_THROW(MakeAgent({.steps = {.value = 2}}), Error);
  EXPECT_THROW(MakeAgent({.steps = {.variance = -1}}), Error);
  EXPECT_THROW(MakeAgent({.replay_capacity = 0}), Error);
  EXPECT_THROW(MakeAgent({.steps_between_replays = 0}), Error);
  EXPECT_THROW(MakeAgent({.replay_updates = -1}), Error);
  EXPECT_THROW(MakeAgent({.priority_exponent = -1}), Error);
  EXPECT_THROW(MakeAgent({.uniform_mix = 2}), Error);
  EXPECT_THROW(MakeAgent({.aleatoric_floor = 0}), Error);
}

}  // namespace
}  // namespace uper
