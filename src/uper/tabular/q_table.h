#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "uper/base/random.h"

namespace uper {

// One step of a finite environment. `discount_t` is gamma, or 0 where the episode terminated; a
// time-out keeps gamma, because the value of s_t still exists.
struct QTransition {
  std::int32_t s_tm1 = 0;
  std::int32_t a_tm1 = 0;
  std::int32_t s_t = 0;
  double r_t = 0;
  double discount_t = 0;
};

struct QStepSizes {
  double value = 0.1;     // of Q
  double variance = 0.1;  // of A; the paper gives none, we use that of Q
};

// Tables over state-action pairs: the value estimate Q, the variance estimate A of the return and
// the visit count C. Everything starts at 0. O(states * actions) memory. Not thread-safe.
class QTable {
 public:
  // REQUIRES: states >= 1, actions >= 1.
  QTable(int states, int actions);

  // One step of Q-learning and of its direct variance learner, with a' = argmax_a Q(s_t, a) (the
  // first of several) in both targets:
  //   delta     = r_t + discount_t Q(s_t, a') - Q(s_tm1, a_tm1)
  //   A(s, a)  += step (delta^2 + discount_t^2 A(s_t, a') - A(s, a))
  //   Q(s, a)  += step delta
  // Returns delta, the TD error before the step.
  double Update(const QTransition& transition, const QStepSizes& steps);

  // Counts one environment step that took `action` in `state`.
  void CountVisit(int state, int action);

  // argmax_a Q(state, a). Equal actions are equally likely, drawn from `ties` (used only then).
  int GreedyAction(int state, RandomStream& ties) const;

  double Value(int state, int action) const { return cells_[Index(state, action)].value; }
  double Variance(int state, int action) const { return cells_[Index(state, action)].variance; }
  std::int64_t Visits(int state, int action) const { return cells_[Index(state, action)].visits; }
  // Visits summed over actions.
  std::int64_t StateVisits(int state) const;

  // The index of a pair in an array [state, action].
  std::size_t Index(int state, int action) const {
    return static_cast<std::size_t>(state) * static_cast<std::size_t>(actions_) +
           static_cast<std::size_t>(action);
  }
  int states() const { return static_cast<int>(cells_.size()) / actions_; }
  int actions() const { return actions_; }

 private:
  struct Cell {
    double value = 0;
    double variance = 0;
    std::int64_t visits = 0;
  };

  // The first best action's cell.
  const Cell& BestCell(int state) const;

  const int actions_;
  std::vector<Cell> cells_;  // [state, action]
};

}  // namespace uper
