#include "uper/tabular/q_table.h"

#include <algorithm>

#include "uper/base/check.h"
#include "uper/core/direct_variance.h"

namespace uper {

QTable::QTable(int states, int actions) : actions_(actions) {
  UPER_CHECK(states >= 1 && actions >= 1, "a table needs a state and an action");
  cells_.resize(static_cast<std::size_t>(states) * static_cast<std::size_t>(actions));
}

double QTable::Update(const QTransition& transition, const QStepSizes& steps) {
  const Cell& next = BestCell(transition.s_t);
  Cell& cell = cells_[Index(transition.s_tm1, transition.a_tm1)];
  const double td_error = transition.r_t + transition.discount_t * next.value - cell.value;
  cell.variance =
      VarianceTdStep(cell.variance, td_error, transition.discount_t, next.variance, steps.variance);
  cell.value += steps.value * td_error;
  return td_error;
}

void QTable::CountVisit(int state, int action) { ++cells_[Index(state, action)].visits; }

int QTable::GreedyAction(int state, RandomStream& ties) const {
  const Cell* row = &cells_[Index(state, 0)];
  const double best = BestCell(state).value;
  const auto equals = static_cast<std::uint64_t>(
      std::count_if(row, row + actions_, [&](const Cell& cell) { return cell.value == best; }));
  std::uint64_t chosen = equals == 1 ? 0 : ties.UniformInt(equals);
  for (int action = 0; action < actions_; ++action) {
    if (row[action].value == best && chosen-- == 0) return action;
  }
  UPER_CHECK(false, "values are not comparable (NaN)");
}

std::int64_t QTable::StateVisits(int state) const {
  std::int64_t visits = 0;
  for (int action = 0; action < actions_; ++action) visits += Visits(state, action);
  return visits;
}

const QTable::Cell& QTable::BestCell(int state) const {
  const Cell* row = &cells_[Index(state, 0)];
  return *std::max_element(row, row + actions_,
                           [](const Cell& a, const Cell& b) { return a.value < b.value; });
}

}  // namespace uper
