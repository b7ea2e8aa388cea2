#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "experiments/atari/claims.h"
#include "experiments/atari/figure.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/files/atomic_file.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/python_tools.h"
#include "uper/cli/report/report_tables.h"
#include "uper/cli/report/run_reader.h"
#include "uper/train/config/agent_files.h"

namespace uper::cli {
namespace {

namespace figures = experiments::atari;
using experiments::Claim;
using figures::AgentPair;
using figures::PictureRequest;
using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr const char* kUper = "qr-ens-uper";
constexpr const char* kC51Uper = "c51-ens-uper";

// The agents of the runs in the order of the documentation.
Names OrderedAgents(const ScoreTable& table) {
  Names agents = table.Present(AgentNames());
  for (const std::string& agent : table.agents()) {
    if (std::find(agents.begin(), agents.end(), agent) == agents.end()) agents.push_back(agent);
  }
  return agents;
}

void CheckBaseline(const std::string& baseline, const ScoreTable& table) {
  if (baseline.empty() || table.Has(baseline)) return;
  throw Error(ErrorKind::kUsage, "--baseline " + baseline + ": none of the runs is of that agent" +
                                     DidYouMean(baseline, table.agents()));
}

bool Contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// With --baseline: every other agent against it. Else UPER against every other agent, and UPER on
// C51 against the other C51 agents. Without UPER: every agent against the first.
std::vector<AgentPair> PairsToCompare(const Names& agents, const std::string& baseline) {
  std::vector<AgentPair> pairs;
  const bool has_uper = Contains(agents, kUper) || Contains(agents, kC51Uper);
  const std::string fixed = baseline.empty() ? agents.front() : baseline;
  for (const std::string& agent : agents) {
    if (!baseline.empty() || !has_uper) {
      if (agent != fixed) pairs.push_back({agent, fixed});
      continue;
    }
    const bool on_c51 = agent.starts_with("c51") && Contains(agents, kC51Uper);
    const std::string subject = on_c51 || !Contains(agents, kUper) ? kC51Uper : kUper;
    if (agent != subject) pairs.push_back({subject, agent});
  }
  return pairs;
}

// The folders of a report's figures, and the files in them. about.json is removed last, because it
// marks the folder as a report's.
constexpr std::array kFigureFolders = {"median", "ablation", "bars", "games", "c51"};
constexpr std::array kFigureFiles = {"data.csv",    "seeds.csv",   "games.csv",
                                     "missing.csv", "claims.json", "published.csv",
                                     "figure.png",  "figure.svg",  "about.json"};

// Whether a report made the folder. settings.json would come from `uper reproduce`.
bool IsFigureOfReport(const std::filesystem::path& folder) {
  return std::filesystem::is_directory(std::filesystem::symlink_status(folder)) &&
         std::filesystem::exists(folder / "about.json") &&
         !std::filesystem::exists(folder / "settings.json");
}

// Removes the figures of an earlier report that this one does not have, since they show other runs.
// `sections` are the sections of this report. Files that no report writes stay.
void RemoveOtherFigures(const std::filesystem::path& report, const Json& sections) {
  for (const char* name : kFigureFolders) {
    const bool written = std::any_of(sections.begin(), sections.end(), [&](const Json& section) {
      return section["folder"] == name;
    });
    const std::filesystem::path folder = report / name;
    if (written || !IsFigureOfReport(folder)) continue;
    for (const char* file : kFigureFiles) std::filesystem::remove(folder / file);
    std::error_code not_empty;  // a file of the user may be in it
    std::filesystem::remove(folder, not_empty);
  }
}

class ReportMaker {
 public:
  ReportMaker(const ReportOptions& options, const ScoreTable& table, std::filesystem::path folder,
              const StopFlag& stop)
      : options_(options), table_(table), folder_(std::move(folder)), stop_(stop) {
    agents_ = OrderedAgents(table);
    pairs_ = PairsToCompare(agents_, options.baseline);
  }

  const Names& agents() const { return agents_; }
  const std::vector<AgentPair>& pairs() const { return pairs_; }

  // Writes the data of the pictures. Returns the sections of the page: {figure, folder}.
  Json WritePictures() const {
    Json sections = Json::array();
    const auto add = [&](const char* figure, const char* name, const std::vector<Claim>& claims) {
      experiments::WriteClaims(folder_ / name / "claims.json", Tested(claims));
      sections.push_back({{"figure", figure}, {"folder", name}});
    };
    figures::WriteMedianPicture(Request("median", agents_, true));
    add("atari-median", "median", figures::MedianClaims(table_));
    const Names ablation =
        table_.Present(Names{"qr-ens-uper", "qr-ens-per", "qr-ens-epi", "qr-ens-uni"});
    if (ablation.size() >= 2) {
      figures::WriteMedianPicture(Request("ablation", ablation, false));
      add("atari-ablation", "ablation", figures::AblationClaims(table_));
    }
    if (!pairs_.empty()) {
      figures::WriteBarsPicture(Request("bars", agents_, false), pairs_);
      const Names baselines{"per", "qr-dqn", "qr-per", "qr-ens-per"};
      add("atari-bars", "bars", figures::BarsClaims(table_, baselines));
    }
    figures::WriteGamesPicture(Request("games", agents_, false));
    add("atari-games", "games", figures::GamesClaims(table_));
    const Names c51 = table_.Present(Names{"c51-ens-uper", "c51-ens-per"});
    if (c51.size() == 2) {
      figures::WriteGamesPicture(Request("c51", c51, false));
      add("atari-c51", "c51", figures::C51Claims(table_));
    }
    return sections;
  }

 private:
  // Leaves out claims about runs that were not given. `uper reproduce` lists them.
  static std::vector<Claim> Tested(std::vector<Claim> claims) {
    std::erase_if(claims, [](const Claim& claim) { return std::isnan(claim.interval.value); });
    return claims;
  }

  PictureRequest Request(const char* name, const Names& agents, bool enlarge) const {
    CreateWritableFolder(folder_ / name);
    return {.table = table_,
            .folder = folder_ / name,
            .agents = agents,
            .enlarged = enlarge ? figures::EnlargedGames(table_) : Names{},
            .missing = figures::MissingRuns(table_, agents, table_.games(), table_.seeds()),
            .published = options_.published,
            .run = [this](std::size_t count, const std::function<void(std::size_t)>& task) {
              ParallelFor(AvailableCores(), count, stop_, task);
            }};
  }

  const ReportOptions& options_;
  const ScoreTable& table_;
  std::filesystem::path folder_;
  const StopFlag& stop_;
  Names agents_;
  std::vector<AgentPair> pairs_;
};

// The number of evaluations in which no episode ended. The page mentions them, because such returns
// are not scores of a whole game.
std::int64_t CutEvaluations(const std::vector<RunCurve>& runs) {
  std::int64_t count = 0;
  for (const RunCurve& run : runs) {
    count += std::count_if(run.evaluations.begin(), run.evaluations.end(),
                           [](const RunCurve::Evaluation& evaluation) { return evaluation.cut; });
  }
  return count;
}

// "1 game", "2 games".
std::string Counted(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void PrintText(const Json& report) {
  fmt::print("{}: {}, {}, seeds {}; at {} frames:\n", Counted(report["runs"], "run"),
             Counted(report["agents"].size(), "agent"), Counted(report["games"].size(), "game"),
             report["seeds"].dump(), report["frames"].get<std::int64_t>());
  if (report["cut_evaluations"] > 0) {
    fmt::print(
        "  note: {} evaluations ended before their first episode did; their returns are of "
        "unfinished games (evaluation_frames)\n",
        report["cut_evaluations"].get<std::int64_t>());
  }
  for (const Json& row : report["aggregates"]) {
    const auto text = [&](const char* key) {
      return row[key]["value"].is_null() ? std::string("-")
                                         : fmt::format("{:.4g}", row[key]["value"].get<double>());
    };
    fmt::print("  {:<14} median {:>8}  IQM {:>8}  mean {:>8}  optimality gap {:>8}\n",
               row["agent"].get<std::string>(), text("median"), text("iqm"), text("mean"),
               text("optimality_gap"));
  }
  for (const Json& row : report["comparisons"]) {
    if (row["probability"]["value"].is_null()) continue;
    fmt::print("  P({} better than {}) = {:.3f}\n", row["subject"].get<std::string>(),
               row["baseline"].get<std::string>(), row["probability"]["value"].get<double>());
  }
}

}  // namespace

int RunReport(const ReportOptions& options, const StopFlag& stop) {
  // All runs are read and checked before anything is written.
  const std::vector<RunCurve> runs =
      ReadRuns({options.runs.begin(), options.runs.end()}, options.partial);
  const ReferenceScores references =
      figures::ReferencesWith(options.references, SuiteOf(runs.front().env));
  const ScoreTable table(runs, references, options.window);
  CheckBaseline(options.baseline, table);
  const std::filesystem::path folder =
      options.folder.empty() ? std::filesystem::path("results/report") : options.folder;
  CreateWritableFolder(folder);

  const ReportMaker maker(options, table, folder, stop);
  Json report = {{"suite", table.suite()},        {"runs", runs.size()},
                 {"agents", maker.agents()},      {"games", table.games()},
                 {"seeds", table.seeds()},        {"frames", table.marks().back()},
                 {"marks", table.marks().size()}, {"window", table.window()}};
  const auto missing = figures::MissingRuns(table, maker.agents(), table.games(), table.seeds());
  figures::WriteMissing(missing, folder / "missing.csv");
  WriteRunTable(runs, table, folder / "runs.csv");
  report["missing"] = missing.size();
  report["unfinished"] =
      std::count_if(runs.begin(), runs.end(), [](const RunCurve& run) { return !run.finished; });
  report["cut_evaluations"] = CutEvaluations(runs);
  report["aggregates"] = WriteAggregates(table, maker.agents(), folder / "aggregates.csv");
  report["comparisons"] = WriteComparisons(table, maker.pairs(), folder / "comparisons.csv");
  report["subsets"] = WriteSubsets(table, maker.agents(), folder / "subsets.csv");
  WriteProfiles(table, maker.agents(), folder / "profiles.csv");
  report["sections"] = maker.WritePictures();
  RemoveOtherFigures(folder, report["sections"]);
  WriteFileAtomically(folder / "report.json", report.dump(2) + "\n");
  WriteReportPage(folder);
  report["report"] = (folder / "report.html").string();
  if (options.json) {
    fmt::print("{}\n", report.dump());
  } else {
    PrintText(report);
  }
  fmt::print(stderr, "report: {}{}\n", (folder / "report.html").string(),
             missing.empty() ? "" : fmt::format(" ({} runs are missing)", missing.size()));
  return kExitDone;
}

}  // namespace uper::cli
