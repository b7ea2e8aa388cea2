#pragma once

#include <array>
#include <vector>

#include "uper/base/random.h"
#include "uper/envs/grid/grid_map.h"

namespace uper {

struct NoisyGridOptions {
  // Standard deviation of the reward in a noisy cell. The paper writes N(0, 2); the authors' code
  // passes such a "variance" to the sampler as the standard deviation (sqrt(2) is the other
  // reading).
  double noise_sd = 2;
  double goal_reward = 100;   // not stated in the paper; its return axis ends at 110
  int timeout_steps = 1'000;  // an episode is cut off after this many steps
};

// The result of one step. `terminated`: the goal is reached (do not bootstrap). `truncated`: the
// time is up (bootstrap). Never both.
struct GridStep {
  int state = 0;  // the cell after the step, numbered as in GridMap
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
};

// The noisy gridworld. Actions 0..3 move up, down, left, right; a move into a wall leaves the agent
// where it is. The reward belongs to the cell in which the step ends: N(0, noise_sd^2) in a noisy
// cell (also when a wall kept the agent there), goal_reward in a goal, which ends the episode, and
// 0 elsewhere. Not thread-safe.
class NoisyGrid {
 public:
  static constexpr int kActions = 4;

  // Throws Error(kUsage) for options out of range.
  NoisyGrid(const GridMap& map, const NoisyGridOptions& options);

  // Starts an episode; returns the start state.
  int Reset();
  // REQUIRES: 0 <= action < kActions; an episode is under way. Draws from `noise` in noisy cells
  // only.
  GridStep Step(int action, RandomStream& noise);

  int state_count() const { return static_cast<int>(cells_.size()); }
  GridCell cell(int state) const { return cells_[static_cast<std::size_t>(state)]; }
  // The state that `action` leads to: moves are deterministic.
  int NextState(int state, int action) const {
    return next_states_[static_cast<std::size_t>(state)][static_cast<std::size_t>(action)];
  }

 private:
  // Constant after construction.
  NoisyGridOptions options_;
  int start_;
  std::vector<GridCell> cells_;                         // [state]
  std::vector<std::array<int, kActions>> next_states_;  // [state, action]

  int state_ = 0;
  int steps_ = 0;           // of this episode
  bool under_way_ = false;  // between Reset() and the end of the episode
};

}  // namespace uper
