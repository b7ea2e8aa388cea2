#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/uper/commands.h"
#include "apps/uper/exit_code.h"
#include "apps/uper/python_tools.h"
#include "apps/uper/terminal_progress.h"
#include "apps/uper/training_bench.h"
#include "experiments/framework/figure.h"
#include "uper/base/atomic_file.h"
#include "uper/base/nearest_name.h"

namespace uper {
namespace {

using experiments::Claim;
using experiments::Figure;
using experiments::Verdict;
using Assignments = std::map<std::string, std::string>;

// Figures of the paper that this version cannot make, with the reason.
const std::vector<std::pair<std::string, std::string>>& UnavailableFigures() {
  static const std::vector<std::pair<std::string, std::string>> figures = {
      {"atari-median", "needs training runs on Atari"},
      {"atari-ablation", "needs training runs on Atari"},
      {"atari-bars", "needs training runs on Atari"},
      {"atari-games", "needs training runs on Atari"},
      {"atari-c51", "needs training runs on Atari"},
  };
  return figures;
}

struct FigureResult {
  const Figure* figure = nullptr;
  std::filesystem::path folder;
  int seeds = 0;
  double simulation_seconds = 0;  // drawing not counted
  std::vector<Claim> claims;

  long Count(Verdict verdict) const {
    return std::count_if(claims.begin(), claims.end(),
                         [&](const Claim& claim) { return claim.verdict == verdict; });
  }
};

[[noreturn]] void ThrowUnknownFigure(const std::string& id) {
  for (const auto& [name, reason] : UnavailableFigures()) {
    if (name == id) throw Error(ErrorKind::kMissingData, "figure '" + id + "' " + reason);
  }
  std::vector<std::string> names{"all"};
  for (const Figure& figure : experiments::AllFigures()) names.push_back(figure.id);
  throw Error(ErrorKind::kUsage, "unknown figure '" + id + "'" + DidYouMean(id, names) +
                                     "; `uper list figures` shows them all");
}

std::vector<const Figure*> ChosenFigures(const std::string& id) {
  std::vector<const Figure*> chosen;
  for (const Figure& figure : experiments::AllFigures()) {
    if (id == "all" || id == figure.id) chosen.push_back(&figure);
  }
  if (chosen.empty()) ThrowUnknownFigure(id);
  return chosen;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Assignments ParseAssignments(const std::vector<std::string>& texts,
                             const std::vector<const Figure*>& figures) {
  std::vector<std::string> known;
  for (const Figure* figure : figures) {
    for (const auto& setting : figure->settings) known.push_back(setting.key);
  }
  Assignments assignments;
  for (const std::string& text : texts) {
    const auto [key, value] = experiments::SplitAssignment(text);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());
      throw Error(ErrorKind::kUsage, "--set " + text + ": unknown key '" + key + "'" +
                                         DidYouMean(key, known) + "; known here: " + Joined(known));
    }
    assignments[key] = value;
  }
  return assignments;
}

// The assignments that this figure declares.
Assignments AssignmentsFor(const Figure& figure, const Assignments& all) {
  Assignments own;
  for (const auto& setting : figure.settings) {
    const auto found = all.find(setting.key);
    if (found != all.end()) own.insert(*found);
  }
  return own;
}

// settings.json: what the figure was made with.
void WriteSettings(const FigureResult& result, const experiments::Settings& settings) {
  nlohmann::ordered_json json = {{"figure", result.figure->id}, {"seeds", result.seeds}};
  for (const auto& [key, value] : settings.values()) json["settings"][key] = value;
  WriteFileAtomically(result.folder / "settings.json", json.dump(2) + "\n");
}

FigureResult RunFigure(const Figure& figure, const experiments::Settings& settings,
                       const std::filesystem::path& folder, const ReproduceOptions& options,
                       const StopFlag& stop) {
  FigureResult result{.figure = &figure,
                      .folder = folder,
                      .seeds = options.seeds > 0 ? options.seeds : figure.default_seeds};
  CreateWritableFolder(folder);
  const int jobs = options.jobs > 0 ? options.jobs : AvailableCores();
  const experiments::TrainingBench training = MakeTrainingBench(jobs, stop);
  const auto start = std::chrono::steady_clock::now();
  {
    TerminalProgress progress(figure.id);
    result.claims = figure.run({.folder = folder,
                                .seeds = result.seeds,
                                .jobs = jobs,
                                .settings = settings,
                                .progress = progress,
                                .stop = stop,
                                .training = &training});
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.simulation_seconds = elapsed.count();
  WriteSettings(result, settings);
  WriteClaims(folder / "claims.json", result.claims);
  DrawFigure(figure.id, folder);
  return result;
}

void PrintResult(const FigureResult& result, bool with_claims) {
  fmt::print(stderr,
             "{}: {} seeds in {:.1f} s; claims: {} hold, {} fail, {} undecided; picture: {}\n",
             result.figure->id, result.seeds, result.simulation_seconds,
             result.Count(Verdict::kHolds), result.Count(Verdict::kFails),
             result.Count(Verdict::kUndecided), (result.folder / "figure.png").string());
  if (!with_claims) return;
  for (const Claim& claim : result.claims) {
    fmt::print("{:>5}  {:<9}  {:>10.4g} [{:.4g}, {:.4g}]  {}\n", claim.id,
               VerdictName(claim.verdict), claim.interval.value, claim.interval.low,
               claim.interval.high, claim.statement);
  }
}

nlohmann::ordered_json ResultJson(const FigureResult& result) {
  return {{"figure", result.figure->id},
          {"folder", result.folder.string()},
          {"seeds", result.seeds},
          {"simulation_seconds", result.simulation_seconds},
          {"holds", result.Count(Verdict::kHolds)},
          {"fails", result.Count(Verdict::kFails)},
          {"undecided", result.Count(Verdict::kUndecided)}};
}

// Ids with reasons.
using Skipped = std::vector<std::pair<std::string, std::string>>;

void PrintSkipped(const Skipped& skipped) {
  for (const auto& [id, reason] : skipped) fmt::print(stderr, "skipped {}: {}\n", id, reason);
}

void PrintJson(const std::vector<FigureResult>& results, const Skipped& skipped) {
  nlohmann::ordered_json json;
  json["figures"] = nlohmann::ordered_json::array();
  for (const FigureResult& result : results) json["figures"].push_back(ResultJson(result));
  json["skipped"] = nlohmann::ordered_json::array();
  for (const auto& [id, reason] : skipped) json["skipped"].push_back(id);
  fmt::print("{}\n", json.dump());
}

}  // namespace

int Reproduce(const ReproduceOptions& options, const StopFlag& stop) {
  const bool all = options.figure == "all";
  const std::vector<const Figure*> figures = ChosenFigures(options.figure);
  if (!options.runs.empty() && !all) {
    throw Error(ErrorKind::kUsage, "figure '" + options.figure + "' takes no training runs");
  }
  const Assignments assignments = ParseAssignments(options.assignments, figures);
  // Every value is checked before the first figure starts.
  std::vector<experiments::Settings> settings;
  for (const Figure* figure : figures) {
    settings.emplace_back(figure->settings, AssignmentsFor(*figure, assignments));
  }
  const std::filesystem::path root =
      !options.folder.empty() ? options.folder
                              : std::filesystem::path("results") / (all ? "" : options.figure);
  std::vector<FigureResult> results;
  Skipped skipped;
  if (all) skipped = UnavailableFigures();
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const std::string missing = figures[i]->missing ? figures[i]->missing(settings[i]) : "";
    if (!missing.empty() && !all) {
      throw Error(ErrorKind::kMissingData, "figure '" + options.figure + "' " + missing);
    }
    if (!missing.empty()) {
      skipped.emplace_back(figures[i]->id, missing);
      continue;
    }
    const std::filesystem::path folder = all ? root / figures[i]->id : root;
    results.push_back(RunFigure(*figures[i], settings[i], folder, options, stop));
    PrintResult(results.back(), !all && !options.json);
  }
  if (all) {
    WriteIndexPage(root);
    PrintSkipped(skipped);
    fmt::print(stderr, "all figures and claims: {}\n", (root / "index.html").string());
  }
  if (options.json) PrintJson(results, skipped);
  const bool failed = std::any_of(results.begin(), results.end(), [](const FigureResult& result) {
    return result.Count(Verdict::kFails) > 0;
  });
  return options.strict && failed ? kExitFailure : kExitDone;
}

}  // namespace uper
