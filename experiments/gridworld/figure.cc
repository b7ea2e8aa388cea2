#include "experiments/gridworld/figure.h"

#include <cstdint>
#include <utility>

#include "experiments/gridworld/claims.h"
#include "experiments/gridworld/model.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments::gridworld {
namespace {

using Type = SettingInfo::Type;

std::vector<SettingInfo> EnvironmentSettings() {
  return {
      {.key = "map",
       .type = Type::kFile,
       .default_text = "",
       .description = "map file (# wall, . free, S start, G goal, ~ noisy); empty: ours, "
                      "configs/gridworld.map"},
      NumberSetting("noise_sd", Type::kNumber, 2, 0, 1e6,
                    "standard deviation of a noisy cell's reward (1.4142: N(0,2) as a variance)"),
      NumberSetting("goal_reward", Type::kNumber, 100, -1e6, 1e6, "reward of the goal"),
      NumberSetting("timeout_steps", Type::kInteger, 1000, 1, 1e6,
                    "steps after which an episode is cut off"),
      NumberSetting("episodes", Type::kInteger, 150, 1, 1e5,
                    "training episodes, each followed by a test episode"),
  };
}

std::vector<SettingInfo> LearnerSettings() {
  return {
      NumberSetting("epsilon", Type::kNumber, 0.95, 0, 1,
                    "probability of a random action while training (0.05: the other reading)"),
      NumberSetting("gamma", Type::kNumber, 0.9, 0, 1, "discount factor"),
      NumberSetting("learning_rate", Type::kNumber, 0.1, 0, 1, "step size of Q"),
      NumberSetting("variance_learning_rate", Type::kNumber, 0.1, 0, 1,
                    "step size of the variance estimate A"),
  };
}

std::vector<SettingInfo> ReplaySettings() {
  return {
      NumberSetting("replay_capacity", Type::kInteger, 10000, 1, 1e7, "transitions in the memory"),
      NumberSetting("steps_between_replays", Type::kInteger, 10, 1, 1e6,
                    "environment steps between two replays"),
      NumberSetting("replay_updates", Type::kInteger, 5, 0, 1e6, "updates of one replay"),
      NumberSetting("priority_exponent", Type::kNumber, 0.7, 0, 4,
                    "alpha in P = p^alpha / sum p^alpha"),
      NumberSetting("uniform_mix", Type::kNumber, 0.001, 0, 1,
                    "share of prioritized draws that are uniform"),
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
      NumberSetting("aleatoric_floor", Type::kNumber, 1e-10, 1e-300, 1e6,
                    "added to A in UPER's priority"),
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
      summaries[method].push_back(Summarize(options.map, trace));
    }
  }
  return GridworldClaims(options.map, summaries);
}

}  // namespace

Figure MakeFigure() {
  return {.id = "gridworld",
          .title = "noisy gridworld: returns and replay heat maps of none, ER, PER and UPER",
          .default_seeds = 300,
          .settings = AllSettings(),
          .run = Run};
}

}  // namespace uper::experiments::gridworld
