#include "experiments/cost_table/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "uper/base/check.h"
#include "uper/base/files/csv_writer.h"
#include "uper/envs/registry.h"

namespace uper::experiments {
namespace {

constexpr const char* kDefaultEnvironment = "atari/pong";
constexpr int kScriptLearnPeriodFrames = 16;

struct PaperTime {
  double seconds;
  double sd_seconds;
};

struct Architecture {
  const char* name;  // as in the paper
  const char* agent;
  PaperTime cpu;
  PaperTime gpu;
};

constexpr std::array<Architecture, 3> kArchitectures = {
    {{"DQN", "dqn", {18.34, 0.09}, {18.39, 0.56}},
     {"QR-DQN", "qr-dqn", {17.80, 0.13}, {18.49, 0.68}},
     {"QR-DQN-ENS", "qr-ens-uper", {28.40, 0.26}, {20.74, 0.43}}}};

constexpr std::array kReadings = {"literal", "script", "script-twice"};

// One row of the table, with the times it comes from: the counted iterations of all seeds.
struct Cell {
  std::string reading;
  std::string device;
  const Architecture* architecture = nullptr;
  std::vector<IterationTime> counted;

  double Mean() const {
    const double sum = std::accumulate(
        counted.begin(), counted.end(), 0.0,
        [](double total, const IterationTime& time) { return total + time.seconds; });
    return sum / static_cast<double>(counted.size());
  }
  double StandardDeviation() const {
    const double mean = Mean();
    double sum = 0;
    for (const IterationTime& time : counted) sum += (time.seconds - mean) * (time.seconds - mean);
    return std::sqrt(sum / static_cast<double>(counted.size()));
  }
  PaperTime Paper() const { return device == "cpu" ? architecture->cpu : architecture->gpu; }
};

std::vector<std::string> KnownEnvironments() {
  std::vector<std::string> names = EnvironmentNames();
  if (std::find(names.begin(), names.end(), kDefaultEnvironment) == names.end()) {
    names.push_back(kDefaultEnvironment);
  }
  return names;
}

std::vector<SettingInfo> DeclareSettings() {
  using Type = SettingInfo::Type;
  return {{.key = "environment",
           .type = Type::kChoice,
           .default_text = kDefaultEnvironment,
           .description = "the game that is played",
           .choices = KnownEnvironments()},
          {.key = "iterations",
           .type = Type::kInteger,
           .default_text = "40",
           .description = "of each model; the second half counts",
           .low = 2,
           .high = 1e6,
           .choices = {}},
          {.key = "iteration_frames",
           .type = Type::kInteger,
           .default_text = "1000",
           .description = "frames of training an iteration",
           .low = 1,
           .high = 1e6,
           .choices = {}},
          {.key = "evaluation_frames",
           .type = Type::kInteger,
           .default_text = "5000",
           .description = "frames of evaluation an iteration, as in the authors' script",
           .low = 1,
           .high = 1e7,
           .choices = {}},
          {.key = "readings",
           .type = Type::kList,
           .default_text = "literal,script,script-twice",
           .description = "which of the readings to measure",
           .choices = {kReadings.begin(), kReadings.end()}}};
}

std::string MissingHere(const Settings& settings) {
  const std::string& wanted = settings.Text("environment");
  const std::vector<std::string> names = EnvironmentNames();
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return "";
  return "needs the environment " + wanted +
         ", which this build does not have; --set environment=minatar/breakout times another game";
}

bool IsMeasured(const std::string& reading, const Architecture& architecture) {
  return reading != "script-twice" || std::string_view(architecture.name) == "QR-DQN-ENS";
}

using KeyValues = std::vector<std::pair<std::string, std::string>>;

KeyValues KeysOf(const std::string& reading, const Architecture& architecture,
                 const Settings& settings) {
  const int frames = settings.Integer("iteration_frames");
  const int all_frames = settings.Integer("iterations") * frames;
  // Filled well before the iterations that count, also where a step is four frames.
  const int minimum = std::clamp(all_frames / 16, 1, 500);
  KeyValues keys = {{"replay.batch_size", "64"},
                    {"replay.capacity_transitions", "10000"},
                    {"replay.minimum_transitions", std::to_string(minimum)},
                    // The network decides (nearly) every action, as it would later in a run.
                    {"exploration.epsilon_from", "0.01"},
                    {"exploration.epsilon_to", "0.01"},
                    {"exploration.start_frames", "0"},
                    {"exploration.end_frames", "0"}};
  if (reading == "literal") {
    keys.insert(keys.end(), {{"agent.learn_period_frames", std::to_string(frames)},
                             {"evaluate_every_frames", "0"}});
    return keys;
  }
  const int period = reading == "script" ? kScriptLearnPeriodFrames : kScriptLearnPeriodFrames / 2;
  keys.insert(keys.end(),
              {{"agent.learn_period_frames", std::to_string(period)},
               {"agent.target_period_frames", "40"},
               {"agent.target_period_updates", "0"},
               {"evaluate_every_frames", std::to_string(frames)},
               {"evaluation_frames", std::to_string(settings.Integer("evaluation_frames"))},
               {"evaluation_episodes", "0"}});
  if (std::string_view(architecture.name) == "QR-DQN-ENS") keys.push_back({"network.members", "8"});
  return keys;
}

std::vector<Cell> EmptyTable(const FigureContext& context) {
  std::vector<Cell> table;
  for (const std::string& reading : context.settings.List("readings")) {
    for (const std::string& device : context.training->devices) {
      for (const Architecture& architecture : kArchitectures) {
        if (!IsMeasured(reading, architecture)) continue;
        table.push_back({.reading = reading, .device = device, .architecture = &architecture});
      }
    }
  }
  return table;
}

// One after the other: they must not disturb each other's times.
void Measure(const FigureContext& context, std::vector<Cell>& table) {
  CsvWriter csv(context.folder / "iterations.csv",
                {"reading", "device", "architecture", "seed", "iteration", "iteration_seconds",
                 "environment_seconds"});
  context.progress.AddTasks(table.size() * static_cast<std::size_t>(context.seeds));
  const int iterations = context.settings.Integer("iterations");
  for (Cell& cell : table) {
    for (int seed = 1; seed <= context.seeds; ++seed) {
      const std::vector<IterationTime> times = context.training->time(
          {.agent = cell.architecture->agent,
           .environment = context.settings.Text("environment"),
           .device = cell.device,
           .seed = seed,
           .iterations = iterations,
           .iteration_frames = context.settings.Integer("iteration_frames"),
           .settings = KeysOf(cell.reading, *cell.architecture, context.settings)});
      UPER_CHECK(times.size() == static_cast<std::size_t>(iterations), "one time an iteration");
      for (int i = 0; i < iterations; ++i) {
        csv.Row(cell.reading, cell.device, cell.architecture->name, seed, i + 1, times[i].seconds,
                times[i].environment_seconds);
      }
      cell.counted.insert(cell.counted.end(), times.begin() + iterations / 2, times.end());
      context.progress.TaskDone();
    }
  }
  csv.Commit();
}

const Cell* Find(const std::vector<Cell>& table, std::string_view reading, std::string_view device,
                 std::string_view architecture) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Cell& cell) {
    return cell.reading == reading && cell.device == device &&
           cell.architecture->name == architecture;
  });
  return found == table.end() ? nullptr : &*found;
}

// The DQN that a row is compared with; the third reading has none of its own.
const Cell& DqnFor(const std::vector<Cell>& table, const Cell& cell) {
  const Cell* own = Find(table, cell.reading, cell.device, "DQN");
  const Cell* script = Find(table, "script", cell.device, "DQN");
  return own != nullptr ? *own : script != nullptr ? *script : cell;
}

void WriteTable(const FigureContext& context, const std::vector<Cell>& table) {
  CsvWriter csv(context.folder / "data.csv",
                {"reading", "device", "architecture", "agent", "iterations", "iteration_seconds",
                 "iteration_sd_seconds", "ratio_to_dqn", "paper_seconds", "paper_sd_seconds",
                 "paper_ratio_to_dqn", "times_faster_than_paper"});
  for (const Cell& cell : table) {
    const Cell& dqn = DqnFor(table, cell);
    const bool compared = std::string_view(dqn.architecture->name) == "DQN";
    const PaperTime paper = cell.Paper();
    const PaperTime paper_dqn =
        cell.device == "cpu" ? kArchitectures[0].cpu : kArchitectures[0].gpu;
    csv.Row(cell.reading, cell.device, cell.architecture->name, cell.architecture->agent,
            cell.counted.size(), cell.Mean(), cell.StandardDeviation(),
            compared ? cell.Mean() / dqn.Mean() : std::numeric_limits<double>::quiet_NaN(),
            paper.seconds, paper.sd_seconds, paper.seconds / paper_dqn.seconds,
            paper.seconds / cell.Mean());
  }
  csv.Commit();
}

// ln(a / b), iteration by iteration.
std::vector<double> LogRatios(const Cell& a, const Cell& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.counted.size(); ++i) {
    ratios.push_back(std::log(a.counted[i].seconds / b.counted[i].seconds));
  }
  return ratios;
}

void AddEngineClaim(const std::vector<Cell>& table, std::vector<Claim>& claims) {
  const Cell* cell = Find(table, "literal", "cpu", "DQN");
  if (cell == nullptr) return;
  std::vector<double> shares;
  for (const IterationTime& time : cell->counted) {
    shares.push_back(time.environment_seconds / time.seconds - 0.5);
  }
  claims.push_back(ClaimPositive(
      {.id = "T1a",
       .statement = "Most of the time of an iteration is spent running the game.",
       .where_in_paper = "L1188",
       .statistic = "reading literal, DQN on the CPU: share of the time in the environment, minus "
                    "0.5, iteration by iteration; > 0 supports it"},
      shares));
}

void AddSimilarClaim(const std::vector<Cell>& table, const std::string& id,
                     const std::string& reading, std::vector<Claim>& claims) {
  const Cell* dqn = Find(table, reading, "cpu", "DQN");
  const Cell* qr = Find(table, reading, "cpu", "QR-DQN");
  if (dqn == nullptr || qr == nullptr) return;
  claims.push_back(ClaimWithin(
      {.id = id,
       .statement = "QR-DQN takes about as long as DQN.",
       .where_in_paper = "L1188, Table 1",
       .statistic = "reading " + reading +
                    ", CPU: ln(seconds of QR-DQN / seconds of DQN), iteration by iteration; within "
                    "ln 1.1 supports it"},
      LogRatios(*qr, *dqn), std::log(1.1)));
}

void AddGpuClaim(const std::vector<Cell>& table, std::vector<Claim>& claims) {
  const Cell* cpu = Find(table, "script", "cpu", "QR-DQN-ENS");
  const Cell* gpu = Find(table, "script", "cuda", "QR-DQN-ENS");
  if (cpu == nullptr || gpu == nullptr) return;
  claims.push_back(ClaimPositive(
      {.id = "T1d",
       .statement = "The ensemble takes less time on a GPU than on the CPU.",
       .where_in_paper = "L1188, Table 1",
       .statistic = "reading script: ln(seconds on the CPU / seconds on the GPU), iteration by "
                    "iteration; > 0 supports it"},
      LogRatios(*cpu, *gpu)));
}

std::vector<Claim> Run(const FigureContext& context) {
  UPER_CHECK(context.training != nullptr, "cost-table needs training");
  std::vector<Cell> table = EmptyTable(context);
  Measure(context, table);
  WriteTable(context, table);
  std::vector<Claim> claims;
  AddEngineClaim(table, claims);
  AddSimilarClaim(table, "T1b", "literal", claims);
  AddSimilarClaim(table, "T1c", "script", claims);
  AddGpuClaim(table, claims);
  return claims;
}

}  // namespace

Figure CostTableFigure() {
  return {.id = "cost-table",
          .title = "Seconds an iteration takes: DQN, QR-DQN and the ensemble, beside the paper's",
          .default_seeds = 1,
          .settings = DeclareSettings(),
          .run = Run,
          .missing = MissingHere,
          .measures_time = true};
}

}  // namespace uper::experiments
