#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "experiments/framework/figure.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/files/atomic_file.h"
#include "uper/base/settings_text.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/python_tools.h"
#include "uper/cli/report/run_reader.h"
#include "uper/cli/terminal_progress.h"

namespace uper::cli {
namespace {

using experiments::Claim;
using experiments::Figure;
using experiments::Verdict;
using Assignments = std::map<std::string, std::string>;

struct FigureResult {
  const Figure* figure = nullptr;
  std::filesystem::path folder;
  int seeds = 0;
  double simulation_seconds = 0;  // without drawing
  std::vector<Claim> claims;

  long Count(Verdict verdict) const {
    return std::count_if(claims.begin(), claims.end(),
                         [&](const Claim& claim) { return claim.verdict == verdict; });
  }
};

[[noreturn]] void ThrowUnknownFigure(const std::string& id) {
  std::vector<std::string> names{"all"};
  for (const Figure& figure : experiments::AllFigures()) names.push_back(figure.id);
  throw Error(ErrorKind::kUsage, "unknown figure '" + id + "'" + DidYouMean(id, names) +
                                     "; `uper list figures` shows them all");
}

// "all" leaves out figures that need runs if no runs are given.
std::vector<const Figure*> ChosenFigures(const std::string& id, bool with_runs) {
  std::vector<const Figure*> chosen;
  for (const Figure& figure : experiments::AllFigures()) {
    const bool possible = with_runs || !figure.needs_runs;
    if (id == figure.id || (id == "all" && possible)) chosen.push_back(&figure);
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
    const auto [key, value] = SplitSetting(text);
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

// The assignments whose keys this figure declares.
Assignments AssignmentsFor(const Figure& figure, const Assignments& all) {
  Assignments own;
  for (const auto& setting : figure.settings) {
    const auto found = all.find(setting.key);
    if (found != all.end()) own.insert(*found);
  }
  return own;
}

// settings.json: the settings and seeds of the figure.
void WriteSettings(const FigureResult& result, const experiments::Settings& settings) {
  nlohmann::ordered_json json = {{"figure", result.figure->id}, {"seeds", result.seeds}};
  for (const auto& [key, value] : settings.values()) json["settings"][key] = value;
  WriteFileAtomically(result.folder / "settings.json", json.dump(2) + "\n");
}

// The runs for a figure, or none if it needs none.
std::vector<RunCurve> RunsFor(const Figure& figure, const experiments::Settings& settings,
                              const ReproduceOptions& options) {
  if (!figure.needs_runs) return {};
  return ReadRuns({options.runs.begin(), options.runs.end()}, settings.Flag("partial"));
}

// The number of seeds: the user's, or that of the runs for a figure made from runs.
int SeedsOf(const Figure& figure, std::span<const RunCurve> runs, const ReproduceOptions& options) {
  if (!figure.needs_runs) return options.seeds > 0 ? options.seeds : figure.default_seeds;
  std::set<std::int64_t> seeds;
  for (const RunCurve& run : runs) seeds.insert(run.seed);
  return static_cast<int>(seeds.size());
}

FigureResult RunFigure(const Figure& figure, const experiments::Settings& settings,
                       const std::filesystem::path& folder, const ReproduceOptions& options,
                       const StopFlag& stop) {
  const std::vector<RunCurve> runs = RunsFor(figure, settings, options);
  if (figure.check) figure.check(runs, settings);
  FigureResult result{.figure = &figure, .folder = folder, .seeds = SeedsOf(figure, runs, options)};
  CreateWritableFolder(folder);
  const int jobs = options.jobs > 0 ? options.jobs : AvailableCores();
  const auto start = std::chrono::steady_clock::now();
  {
    TerminalProgress progress(figure.id);
    const experiments::FigureContext context{.folder = folder,
                                             .seeds = result.seeds,
                                             .jobs = jobs,
                                             .settings = settings,
                                             .progress = progress,
                                             .stop = stop,
                                             .runs = runs};
    result.claims = figure.run(context);
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

// The figures that `reproduce all` leaves out, each with the reason.
using SkippedFigures = std::vector<std::pair<std::string, std::string>>;

SkippedFigures SkippedWithoutRuns() {
  SkippedFigures skipped;
  for (const Figure& figure : experiments::AllFigures()) {
    if (figure.needs_runs) skipped.emplace_back(figure.id, "needs training runs");
  }
  return skipped;
}

// Says what this machine or build lacks for the figure. Empty if the figure can be made.
std::string MissingHere(const Figure& figure, const experiments::Settings& settings) {
  return figure.missing ? figure.missing(settings) : "";
}

// Why `reproduce all` leaves the figure out: it needs the machine for itself, this machine lacks
// something, or no run has one of its agents. Empty if the figure is made.
std::string ReasonToSkip(const Figure& figure, const experiments::Settings& settings,
                         const ReproduceOptions& options) {
  if (figure.measures_time) return "times this machine: run it by itself";
  const std::string missing = MissingHere(figure, settings);
  if (!missing.empty() || !figure.needs_runs || !figure.check) return missing;
  try {
    figure.check(RunsFor(figure, settings, options), settings);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMissingData) throw;
    return error.what();
  }
  return "";
}

void PrintSkipped(const SkippedFigures& skipped) {
  for (const auto& [id, reason] : skipped) fmt::print(stderr, "skipped {}: {}\n", id, reason);
}

void PrintJson(const std::vector<FigureResult>& results, const SkippedFigures& skipped) {
  nlohmann::ordered_json json;
  json["figures"] = nlohmann::ordered_json::array();
  for (const FigureResult& result : results) json["figures"].push_back(ResultJson(result));
  json["skipped"] = nlohmann::ordered_json::array();
  for (const auto& [id, reason] : skipped) json["skipped"].push_back(id);
  fmt::print("{}\n", json.dump());
}

// The settings of each figure, with the user's assignments.
std::vector<experiments::Settings> SettingsFor(const std::vector<const Figure*>& figures,
                                               const ReproduceOptions& options) {
  const Assignments assignments = ParseAssignments(options.assignments, figures);
  std::vector<experiments::Settings> settings;
  for (const Figure* figure : figures) {
    settings.emplace_back(figure->settings, AssignmentsFor(*figure, assignments));
  }
  return settings;
}

void FinishAll(const std::filesystem::path& root, const SkippedFigures& skipped) {
  WriteIndexPage(root);
  PrintSkipped(skipped);
  fmt::print(stderr, "all figures and claims: {}\n", (root / "index.html").string());
}

bool AnyClaimFails(const std::vector<FigureResult>& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const FigureResult& result) { return result.Count(Verdict::kFails) > 0; });
}

}  // namespace

int RunReproduce(const ReproduceOptions& options, const StopFlag& stop) {
  const bool all = options.figure == "all";
  const bool with_runs = !options.runs.empty();
  const std::vector<const Figure*> figures = ChosenFigures(options.figure, with_runs);
  if (with_runs && !all && !figures.front()->needs_runs) {
    throw Error(ErrorKind::kUsage, "figure '" + options.figure + "' takes no training runs");
  }
  // Checks every value before the first figure starts.
  const std::vector<experiments::Settings> settings = SettingsFor(figures, options);
  const std::filesystem::path root =
      !options.folder.empty() ? options.folder
                              : std::filesystem::path("results") / (all ? "" : options.figure);
  SkippedFigures skipped;
  if (all && !with_runs) skipped = SkippedWithoutRuns();
  std::vector<FigureResult> results;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const std::string reason = all ? ReasonToSkip(*figures[i], settings[i], options)
                                   : MissingHere(*figures[i], settings[i]);
    if (!reason.empty() && !all) {
      throw Error(ErrorKind::kMissingData, "figure '" + options.figure + "' " + reason);
    }
    if (!reason.empty()) {
      skipped.emplace_back(figures[i]->id, reason);
      continue;
    }
    const std::filesystem::path folder = all ? root / figures[i]->id : root;
    results.push_back(RunFigure(*figures[i], settings[i], folder, options, stop));
    PrintResult(results.back(), !all && !options.json);
  }
  if (all) FinishAll(root, skipped);
  if (options.json) PrintJson(results, skipped);
  return options.strict && AnyClaimFails(results) ? kExitFailure : kExitDone;
}

}  // namespace uper::cli
