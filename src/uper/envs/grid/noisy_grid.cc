#include "uper/envs/grid/noisy_grid.h"

#include <cmath>

#include "uper/base/check.h"
#include "uper/base/error.h"

namespace uper {
namespace {

constexpr std::array<std::array<int, 2>, NoisyGrid::kActions> kMoves = {
    {{-1, 0}, {1, 0}, {0, -1}, {0, 1}}};  // up, down, left, right

void Validate(const NoisyGridOptions& options) {
  if (!(options.noise_sd >= 0) || !std::isfinite(options.noise_sd)) {
    throw Error(ErrorKind::kUsage, "noise_sd must be a number of at least 0");
  }
  if (!std::isfinite(options.goal_reward)) {
    throw Error(ErrorKind::kUsage, "goal_reward must be finite");
  }
  if (options.timeout_steps < 1) {
    throw Error(ErrorKind::kUsage, "timeout_steps must be at least 1");
  }
}

}  // namespace

NoisyGrid::NoisyGrid(const GridMap& map, const NoisyGridOptions& options)
    : options_(options), start_(map.start()) {
  Validate(options);
  for (int state = 0; state < map.cell_count(); ++state) {
    cells_.push_back(map.cell(state));
    auto& next = next_states_.emplace_back();
    for (std::size_t action = 0; action < kMoves.size(); ++action) {
      next[action] = map.Neighbor(state, kMoves[action][0], kMoves[action][1]);
    }
  }
}

int NoisyGrid::Reset() {
  state_ = start_;
  steps_ = 0;
  under_way_ = true;
  return state_;
}

GridStep NoisyGrid::Step(int action, RandomStream& noise) {
  UPER_CHECK(under_way_, "Step() needs a Reset() first");
  UPER_CHECK(0 <= action && action < kActions, "unknown action");
  state_ = NextState(state_, action);
  ++steps_;
  GridStep step{.state = state_};
  if (cell(state_) == GridCell::kNoisy) {
    step.reward = options_.noise_sd * noise.Normal();
  } else if (cell(state_) == GridCell::kGoal) {
    step.reward = options_.goal_reward;
    step.terminated = true;
  }
  step.truncated = !step.terminated && steps_ >= options_.timeout_steps;
  under_way_ = !step.terminated && !step.truncated;
  return step;
}

}  // namespace uper
