#include "experiments/gridworld/model.h"

namespace uper::experiments::gridworld {
namespace {

QAgentOptions AgentOptionsFor(const GridworldOptions& options, GridworldMethod method) {
  QAgentOptions agent = options.agent;
  switch (method) {
    case GridworldMethod::kNone:
      agent.replay = QReplay::kNone;
      break;
    case GridworldMethod::kEr:
      agent.replay = QReplay::kUniform;
      break;
    case GridworldMethod::kPer:
      agent.replay = QReplay::kTdError;
      break;
    case GridworldMethod::kUper:
      agent.replay = QReplay::kInfoGain;
      break;
  }
  return agent;
}

void Train(NoisyGrid& grid, QAgent& agent, double gamma, std::uint64_t seed,
           std::uint64_t episode) {
  RandomStream exploration(seed, "gridworld exploration", episode);
  RandomStream noise(seed, "gridworld noise", episode);
  int state = grid.Reset();
  for (GridStep step; !step.terminated && !step.truncated; state = step.state) {
    const int action = agent.Act(state, exploration);
    step = grid.Step(action, noise);
    agent.Observe(LearnerTransition(state, action, step, gamma));
  }
}

TestEpisode Test(NoisyGrid& grid, const QTable& table, std::uint64_t seed, std::uint64_t episode) {
  RandomStream ties(seed, "gridworld test ties", episode);
  RandomStream noise(seed, "gridworld test noise", episode);
  TestEpisode test;
  int state = grid.Reset();
  for (GridStep step; !step.terminated && !step.truncated; state = step.state) {
    step = grid.Step(table.GreedyAction(state, ties), noise);
    test.undiscounted_return += step.reward;
    ++test.steps;
    test.reached_goal = step.terminated;
  }
  return test;
}

void RecordDraws(const NoisyGrid& grid, const QAgent& agent, GridworldTrace& trace) {
  trace.draws_by_state.assign(static_cast<std::size_t>(grid.state_count()), 0);
  for (int state = 0; state < grid.state_count(); ++state) {
    for (int action = 0; action < NoisyGrid::kActions; ++action) {
      const std::int64_t draws = agent.draws()[agent.table().Index(state, action)];
      trace.draws_by_state[static_cast<std::size_t>(state)] += draws;
      const bool into_noise = grid.cell(grid.NextState(state, action)) == GridCell::kNoisy;
      if (into_noise) trace.draws_into_noise += draws;
    }
  }
}

}  // namespace

std::string_view GridworldMethodName(GridworldMethod method) {
  switch (method) {
    case GridworldMethod::kNone:
      return "none";
    case GridworldMethod::kEr:
      return "er";
    case GridworldMethod::kPer:
      return "per";
    case GridworldMethod::kUper:
      return "uper";
  }
  return "unknown";
}

QTransition LearnerTransition(int s_tm1, int a_tm1, const GridStep& step, double gamma) {
  return {.s_tm1 = s_tm1,
          .a_tm1 = a_tm1,
          .s_t = step.state,
          .r_t = step.reward,
          .discount_t = step.terminated ? 0 : gamma};
}

GridworldTrace SimulateGridworld(const GridworldOptions& options, GridworldMethod method,
                                 std::uint64_t seed) {
  NoisyGrid grid(options.map, options.environment);
  QAgent agent(grid.state_count(), NoisyGrid::kActions, AgentOptionsFor(options, method),
               RandomStream(seed, "gridworld replay draws"));
  GridworldTrace trace;
  for (int episode = 1; episode <= options.episodes; ++episode) {
    Train(grid, agent, options.gamma, seed, static_cast<std::uint64_t>(episode));
    trace.tests.push_back(Test(grid, agent.table(), seed, static_cast<std::uint64_t>(episode)));
  }
  RecordDraws(grid, agent, trace);
  return trace;
}

}  // namespace uper::experiments::gridworld
