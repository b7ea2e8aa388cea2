#include "uper/tabular/q_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "uper/base/error.h"

namespace uper {
namespace {

// Two states, two actions, steps 1/2 (value) and 1/4 (variance): all numbers by hand.
TEST(QTableTest, UpdatesByHand) {
  const QStepSizes steps{.value = 0.5, .variance = 0.25};
  QTable table(2, 2);

  // All tables are 0: delta = 2, A = 1/4 * 4, Q = 1/2 * 2.
  EXPECT_DOUBLE_EQ(
      table.Update({.s_tm1 = 0, .a_tm1 = 0, .s_t = 1, .r_t = 2, .discount_t = 0.9}, steps), 2);
  EXPECT_DOUBLE_EQ(table.Value(0, 0), 1);
  EXPECT_DOUBLE_EQ(table.Variance(0, 0), 1);

  // Bootstraps from the best action of state 0: delta = 0.9 * 1, and the variance from its A = 1:
  // A = 1/4 * (0.81 + 0.81 * 1).
  EXPECT_DOUBLE_EQ(
      table.Update({.s_tm1 = 1, .a_tm1 = 1, .s_t = 0, .r_t = 0, .discount_t = 0.9}, steps), 0.9);
  EXPECT_DOUBLE_EQ(table.Value(1, 1), 0.45);
  EXPECT_DOUBLE_EQ(table.Variance(1, 1), 0.405);

  // Terminal: no bootstrap. delta = 4 - 1, A = 1 + 1/4 * (9 - 1), Q = 1 + 1/2 * 3.
  EXPECT_DOUBLE_EQ(
      table.Update({.s_tm1 = 0, .a_tm1 = 0, .s_t = 1, .r_t = 4, .discount_t = 0}, steps), 3);
  EXPECT_DOUBLE_EQ(table.Value(0, 0), 2.5);
  EXPECT_DOUBLE_EQ(table.Variance(0, 0), 3);

  // The other pairs were never touched.
  EXPECT_EQ(table.Value(0, 1), 0);
  EXPECT_EQ(table.Value(1, 0), 0);
  EXPECT_EQ(table.Variance(0, 1), 0);
}

TEST(QTableTest, NegativeValuesLoseAgainstUntriedActions) {
  QTable table(1, 2);
  table.Update({.s_tm1 = 0, .a_tm1 = 0, .s_t = 0, .r_t = -8, .discount_t = 0}, {.value = 0.5});
  // Q = (-4, 0): the best is 0, so delta = 0.9 * 0 - (-4).
  EXPECT_DOUBLE_EQ(
      table.Update({.s_tm1 = 0, .a_tm1 = 0, .s_t = 0, .r_t = 0, .discount_t = 0.9}, {.value = 0.5}),
      4);
}

TEST(QTableTest, CountsVisitsOnRequestOnly) {
  QTable table(2, 2);
  table.Update({.s_tm1 = 1, .a_tm1 = 0, .s_t = 0, .r_t = 1, .discount_t = 0}, {});
  EXPECT_EQ(table.StateVisits(1), 0);
  table.CountVisit(1, 0);
  table.CountVisit(1, 0);
  table.CountVisit(1, 1);
  EXPECT_EQ(table.Visits(1, 0), 2);
  EXPECT_EQ(table.Visits(1, 1), 1);
  EXPECT_EQ(table.StateVisits(1), 3);
  EXPECT_EQ(table.StateVisits(0), 0);
}

TEST(QTableTest, GreedyActionNeedsNoRandomNumberWithoutTies) {
  QTable table(1, 4);
  table.Update({.s_tm1 = 0, .a_tm1 = 2, .s_t = 0, .r_t = 1, .discount_t = 0}, {});
  RandomStream ties(1, "ties");
  EXPECT_EQ(table.GreedyAction(0, ties), 2);
  EXPECT_EQ(ties.position(), 0u);
}

// 30,000 draws among 3 equals: each count has a standard deviation of sqrt(n p (1 - p)) = 82, the
// tolerance is 4 of them; "the first wins" or "the last wins" would be off by 10,000.
TEST(QTableTest, TiesAreBrokenUniformly) {
  QTable table(1, 4);
  table.Update({.s_tm1 = 0, .a_tm1 = 1, .s_t = 0, .r_t = -1, .discount_t = 0}, {});
  RandomStream ties(1, "ties");
  std::array<int, 4> counts{};
  for (int draw = 0; draw < 30'000; ++draw) {
    ++counts[static_cast<std::size_t>(table.GreedyAction(0, ties))];
  }
  EXPECT_EQ(counts[1], 0);
  for (const std::size_t action : {0, 2, 3}) EXPECT_NEAR(counts[action], 10'000, 4 * 82);
}

TEST(QTableTest, RefusesEmptyTables) {
  EXPECT_THROW(QTable(0, 4), Error);
  EXPECT_THROW(QTable(4, 0), Error);
  EXPECT_EQ(QTable(3, 4).states(), 3);
}

}  // namespace
}  // namespace uper
