#include "experiments/cost_table/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "uper/base/files/csv_writer.h"

namespace uper::experiments::cost_table {
namespace {

constexpr int kScriptLearnPeriodFrames = 16;

bool IsMeasured(const std::string& reading, const Architecture& architecture) {
  return reading != "script-twice" || std::string_view(architecture.name) == "QR-DQN-ENS";
}

using KeyValues = std::vector<std::pair<std::string, std::string>>;

KeyValues KeysOf(const std::string& reading, const Architecture& architecture,
                 const Settings& settings) {
  const int frames = settings.Integer("iteration_frames");
  const int all_frames = settings.Integer("iterations") * frames;
  // The memory is full enough well before the iterations that count, even with four frames per
  // step.
  const int minimum = std::clamp(all_frames / 16, 1, 500);
  KeyValues keys = {{"replay.batch_size", "64"},
                    {"replay.capacity_transitions", "10000"},
                    {"replay.minimum_transitions", std::to_string(minimum)},
                    // The network chooses nearly every action, as it would later in a run.
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

const Cell* Find(const std::vector<Cell>& table, std::string_view reading, std::string_view device,
                 std::string_view architecture) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Cell& cell) {
    return cell.reading == reading && cell.device == device &&
           cell.architecture->name == architecture;
  });
  return found == table.end() ? nullptr : &*found;
}

// The DQN that a row is compared with. The third reading has none and takes the second one's.
const Cell& DqnFor(const std::vector<Cell>& table, const Cell& cell) {
  const Cell* own = Find(table, cell.reading, cell.device, "DQN");
  const Cell* script = Find(table, "script", cell.device, "DQN");
  return own != nullptr ? *own : script != nullptr ? *script : cell;
}

// ln(a / b), iteration by iteration.
std::vector<double> LogRatios(const Cell& a, const Cell& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.counted.size(); ++i) {
    ratios.push_back(std::log(a.counted[i].seconds / b.counted[i].seconds));
  }
  return ratios;
}

// Share of the time in the environment, minus one half, iteration by iteration.
std::vector<double> EnvironmentShares(const Cell& cell) {
  std::vector<double> shares;
  for (const IterationTime& time : cell.counted) {
    shares.push_back(time.environment_seconds / time.seconds - 0.5);
  }
  return shares;
}

ClaimRow SimilarTimesRow(const std::string& id, const std::string& reading, const Cell& qr,
                         const Cell& dqn) {
  return {{.id = id,
           .statement = "QR-DQN takes about as long as DQN.",
           .where_in_paper = "L1188, Table 1",
           .statistic = "reading " + reading +
                        ", CPU: ln(seconds of QR-DQN / seconds of DQN), iteration by iteration; "
                        "within ln 1.1 supports it"},
          Within(LogRatios(qr, dqn), std::log(1.1))};
}

}  // namespace

double Cell::Mean() const {
  double sum = 0;
  for (const IterationTime& time : counted) sum += time.seconds;
  return sum / static_cast<double>(counted.size());
}

double Cell::StandardDeviation() const {
  const double mean = Mean();
  double sum = 0;
  for (const IterationTime& time : counted) sum += (time.seconds - mean) * (time.seconds - mean);
  return std::sqrt(sum / static_cast<double>(counted.size()));
}

void Cell::Count(std::span<const IterationTime> times) {
  const std::span<const IterationTime> second_half = times.subspan(times.size() / 2);
  counted.insert(counted.end(), second_half.begin(), second_half.end());
}

std::vector<Cell> EmptyTable(std::span<const std::string> readings,
                             std::span<const std::string> devices) {
  std::vector<Cell> table;
  for (const std::string& reading : readings) {
    for (const std::string& device : devices) {
      for (const Architecture& architecture : kArchitectures) {
        if (!IsMeasured(reading, architecture)) continue;
        table.push_back({.reading = reading, .device = device, .architecture = &architecture});
      }
    }
  }
  return table;
}

TimedTraining TrainingFor(const Cell& cell, const Settings& settings, int seed) {
  return {.agent = cell.architecture->agent,
          .environment = settings.Text("environment"),
          .device = cell.device,
          .seed = seed,
          .iterations = settings.Integer("iterations"),
          .iteration_frames = settings.Integer("iteration_frames"),
          .settings = KeysOf(cell.reading, *cell.architecture, settings)};
}

void WriteTable(const std::filesystem::path& file, const std::vector<Cell>& table) {
  CsvWriter csv(file, {"reading", "device", "architecture", "agent", "iterations",
                       "iteration_seconds", "iteration_sd_seconds", "ratio_to_dqn", "paper_seconds",
                       "paper_sd_seconds", "paper_ratio_to_dqn", "times_faster_than_paper"});
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

std::vector<Claim> CostClaims(const std::vector<Cell>& table) {
  std::vector<ClaimRow> rows;
  const Cell* literal_dqn = Find(table, "literal", "cpu", "DQN");
  const Cell* literal_qr = Find(table, "literal", "cpu", "QR-DQN");
  const Cell* script_dqn = Find(table, "script", "cpu", "DQN");
  const Cell* script_qr = Find(table, "script", "cpu", "QR-DQN");
  const Cell* ensemble_cpu = Find(table, "script", "cpu", "QR-DQN-ENS");
  const Cell* ensemble_gpu = Find(table, "script", "cuda", "QR-DQN-ENS");
  if (literal_dqn != nullptr) {
    rows.push_back(
        {{.id = "T1a",
          .statement = "Most of the time of an iteration is spent running the game.",
          .where_in_paper = "L1188",
          .statistic = "reading literal, DQN on the CPU: share of the time in the environment, "
                       "minus 0.5, iteration by iteration; > 0 supports it"},
         Positive(EnvironmentShares(*literal_dqn))});
  }
  if (literal_dqn != nullptr && literal_qr != nullptr) {
    rows.push_back(SimilarTimesRow("T1b", "literal", *literal_qr, *literal_dqn));
  }
  if (script_dqn != nullptr && script_qr != nullptr) {
    rows.push_back(SimilarTimesRow("T1c", "script", *script_qr, *script_dqn));
  }
  if (ensemble_cpu != nullptr && ensemble_gpu != nullptr) {
    rows.push_back({{.id = "T1d",
                     .statement = "The ensemble takes less time on a GPU than on the CPU.",
                     .where_in_paper = "L1188, Table 1",
                     .statistic = "reading script: ln(seconds on the CPU / seconds on the GPU), "
                                  "iteration by iteration; > 0 supports it"},
                    Positive(LogRatios(*ensemble_cpu, *ensemble_gpu))});
  }
  return TestClaims(rows);
}

}  // namespace uper::experiments::cost_table
