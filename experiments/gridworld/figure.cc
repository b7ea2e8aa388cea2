#include "experiments/gridworld/figure.h"

#include <cstdint>
#include <utility>

#include "experiments/gridworld/claims.h"
#include "experiments/gridworld/model.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments {
namespace {

using Type = SettingInfo::Type;

std::vector<SettingInfo> EnvironmentSettings() {
  return {
      {.key = "map",
       .type = Type::kFile,
       .default_text = "",
       .description = "map file (# wall, . free, S start, G goal, ~ noisy); empty: ours, "
                      "configs/gridworld.map"},
      {.key = "noise_sd",
       .default_text = "2",
       .description = "standard deviation of a noisy cell's reward (1.4142: N(0,2) as a variance)",
       .low = 0,
       .high = 1e6},
      {.key = "goal_reward",
       .default_text = "100",
       .description = "reward of the goal",
       .low = -1e6,
       .high = 1e6},
      {.key = "timeout_steps",
       .type = Type::kInteger,
       .default_text = "1000",
       .description = "steps after which an episode is cut off",
       .low = 1,
       .high = 1e6},
      {.key = "episodes",
       .type = Type::kInteger,
       .default_text = "150",
       .description = "training episodes, each followed by a test episode",
       .low = 1,
       .high = 1e5},
  };
}

std::vector<SettingInfo> LearnerSettings() {
  return {
      {.key = "epsilon",
       .default_text = "0.95",
       .description = "probability of a random action while training (0.05: the other reading)",
       .low = 0,
       .high = 1},
      {.key = "gamma",
       .default_text = "0.9",
       .description = "discount factor",
       .low = 0,
       .high = 1},
      {.key = "learning_rate",
       .default_text = "0.1",
       .description = "step size of Q",
       .low = 0,
       .high = 1},
      {.key = "variance_learning_rate",
       .default_text = "0.1",
       .description = "step size of the variance estimate A",
       .low = 0,
       .high = 1},
  };
}

std::vector<SettingInfo> ReplaySettings() {
  return {
      {.key = "replay_capacity",
       .type = Type::kInteger,
       .default_text = "10000",
       .description = "transitions in the memory",
       .low = 1,
       .high = 1e7},
      {.key = "steps_between_replays",
       .type = Type::kInteger,
       .default_text = "10",
       .description = "environment steps between two replays",
       .low = 1,
       .high = 1e6},
      {.key = "replay_updates",
       .type = Type::kInteger,
       .default_text = "5",
       .description = "updates of one replay",
       .low = 0,
       .high = 1e6},
      {.key = "priority_exponent",
       .default_text = "0.7",
       .description = "alpha in P = p^alpha / sum p^alpha",
       .low = 0,
       .high = 4},
      {.key = "uniform_mix",
       .default_text = "0.001",
       .description = "share of prioritised draws that are uniform",
       .low = 0,
       .high = 1},
  };
}

std::vector<SettingInfo> PrioritySettings() {
  return {
      {.key = "new_items",
       .type = Type::kChoice,
       .default_text = "current",
       .description = "priority before the first replay: the item's own, or the largest so far",
       .choices = {"current", "largest"}},
      {.key = "visit_count",
       .type = Type::kChoice,
       .default_text = "state_action",
       .description = "what C counts in UPER's E = 1 / sqrt(1 + C)",
       .choices = {"state_action", "state"}},
      {.key = "aleatoric_floor",
       .default_text = "1e-10",
       .description = "added to A in UPER's priority",
       .low = 1e-300,
       .high = 1e6},
  };
}

std::vector<SettingInfo> AllSettings() {
  std::vector<SettingInfo> all = EnvironmentSettings();
  for (const auto& part : {LearnerSettings(), ReplaySettings(), PrioritySettings()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

GridworldOptions OptionsFrom(const Settings& settings) {
  const std::string& map_file = settings.Text("map");
  return {
      .map = map_file.empty() ? DefaultGridMap() : GridMap::Load(map_file),
      .environment = {.noise_sd = settings.Number("noise_sd"),
                      .goal_reward = settings.Number("goal_reward"),
                      .timeout_steps = settings.Integer("timeout_steps")},
      .agent = {.epsilon = settings.Number("epsilon"),
                .steps = {.value = settings.Number("learning_rate"),
                          .variance = settings.Number("variance_learning_rate")},
                .replay_capacity = static_cast<std::size_t>(settings.Integer("replay_capacity")),
                .steps_between_replays = settings.Integer("steps_between_replays"),
                .replay_updates = settings.Integer("replay_updates"),
                .priority_exponent = settings.Number("priority_exponent"),
                .uniform_mix = settings.Number("uniform_mix"),
                .new_items = settings.Text("new_items") == "largest" ? NewItemPriority::kLargest
                                                                     : NewItemPriority::kCurrent,
                .visit_count = settings.Text("visit_count") == "state" ? VisitCount::kState
                                                                       : VisitCount::kStateAction,
                .aleatoric_floor = settings.Number("aleatoric_floor")},
      .gamma = settings.Number("gamma"),
      .episodes = settings.Integer("episodes"),
  };
}

// [method][seed]
using Traces = std::array<std::vector<GridworldTrace>, kGridworldMethods.size()>;

Traces Simulate(const FigureContext& context, const GridworldOptions& options) {
  const std::size_t seeds = static_cast<std::size_t>(context.seeds);
  Traces traces;
  for (auto& of_method : traces) of_method.resize(seeds);
  RunTasks(context, kGridworldMethods.size() * seeds, [&](std::size_t task) {
    const std::size_t method = task / seeds;
    const std::size_t seed = task % seeds;
    traces[method][seed] = SimulateGridworld(options, kGridworldMethods[method], seed + 1);
  });
  return traces;
}

void WriteReturns(const std::filesystem::path& file, const Traces& traces) {
  CsvWriter csv(file, {"method", "seed", "episode", "return", "steps", "reached_goal"});
  for (std::size_t method = 0; method < traces.size(); ++method) {
    for (std::size_t seed = 0; seed < traces[method].size(); ++seed) {
      const std::vector<TestEpisode>& tests = traces[method][seed].tests;
      for (std::size_t episode = 0; episode < tests.size(); ++episode) {
        const TestEpisode& test = tests[episode];
        csv.Row(GridworldMethodName(kGridworldMethods[method]), seed + 1, episode + 1,
                test.undiscounted_return, test.steps, test.reached_goal ? 1 : 0);
      }
    }
  }
  csv.Commit();
}

void WriteHeatmap(const std::filesystem::path& file, const GridMap& map, const Traces& traces) {
  CsvWriter csv(file, {"method", "row", "column", "draws"});
  for (std::size_t method = 0; method < traces.size(); ++method) {
    for (int cell = 0; cell < map.cell_count(); ++cell) {
      std::int64_t draws = 0;
      for (const GridworldTrace& trace : traces[method]) {
        draws += trace.draws_by_state[static_cast<std::size_t>(cell)];
      }
      csv.Row(GridworldMethodName(kGridworldMethods[method]), cell / map.columns(),
              cell % map.columns(), draws);
    }
  }
  csv.Commit();
}

void WriteMap(const std::filesystem::path& file, const GridMap& map) {
  CsvWriter csv(file, {"row", "column", "kind"});
  for (int cell = 0; cell < map.cell_count(); ++cell) {
    csv.Row(cell / map.columns(), cell % map.columns(), GridCellName(map.cell(cell)));
  }
  csv.Commit();
}

std::vector<Claim> Run(const FigureContext& context) {
  const GridworldOptions options = OptionsFrom(context.settings);
  const Traces traces = Simulate(context, options);
  WriteReturns(context.folder / "returns.csv", traces);
  WriteHeatmap(context.folder / "heatmap.csv", options.map, traces);
  WriteMap(context.folder / "map.csv", options.map);
  GridworldSummaries summaries;
  for (std::size_t method = 0; method < traces.size(); ++method) {
    for (const GridworldTrace& trace : traces[method]) {
      summaries[method].push_back(Summarise(options.map, trace));
    }
  }
  return GridworldClaims(options.map, summaries);
}

}  // namespace

Figure GridworldFigure() {
  return {.id = "gridworld",
          .title = "noisy gridworld: returns and replay heat maps of none, ER, PER and UPER",
          .default_seeds = 300,
          .settings = AllSettings(),
          .run = Run};
}

}  // namespace uper::experiments
