#include "experiments/atari/figures.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "experiments/atari/claims.h"
#include "uper/base/error.h"
#include "uper/envs/registry.h"
#include "uper/stats/smoothing.h"

namespace uper::experiments {
namespace {

using Type = SettingInfo::Type;
using Names = std::vector<std::string>;

const Names kMedianAgents = {"qr-ens-uper", "per", "qr-dqn", "qr-per", "qr-ens-per"};
const Names kAblationAgents = {"qr-ens-uper", "qr-ens-per", "qr-ens-epi", "qr-ens-uni"};
const Names kC51Agents = {"c51-ens-uper", "c51-ens-per"};
const Names kBaselines = {"per", "qr-dqn", "qr-per", "qr-ens-per"};
constexpr std::size_t kEnlargedGames = 4;

std::vector<SettingInfo> RunSettings() {
  return {
      {.key = "window",
       .type = Type::kInteger,
       .default_text = std::to_string(kSmoothingWindow),
       .description = "evaluations in the trailing mean of a curve (1: not smoothed)",
       .low = 1,
       .high = 1e6},
      {.key = "references",
       .type = Type::kFile,
       .default_text = "",
       .description = "CSV file env,random,reference: the scores that stand for 0 and 1; empty: "
                      "those built in (data/)"},
      {.key = "published",
       .type = Type::kFlag,
       .default_text = "false",
       .description = "draw published curves behind (data/README.md)"},
      {.key = "partial",
       .type = Type::kFlag,
       .default_text = "false",
       .description = "take unfinished runs too, as far as they all go"},
      {.key = "replications",
       .type = Type::kInteger,
       .default_text = "2000",
       .description = "resamples of the stratified bootstrap at each frame mark",
       .low = 0,
       .high = 1e6},
  };
}

std::string ReadText(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) {
    throw Error(ErrorKind::kMissingData, "cannot read the reference scores " + file.string());
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Environments that may have reference scores: those of this build, and games that only another
// build can play.
Names EnvironmentsToScore() {
  Names names = EnvironmentNames();
  for (const auto& [env, score] : BuiltInReferenceScores()) {
    if (std::find(names.begin(), names.end(), env) == names.end()) names.push_back(env);
  }
  return names;
}

// A file that is not there is a wrong value of the setting: as missing data it would be a reason
// for `reproduce all` to leave the figure out.
ReferenceScores ReferencesOf(const Settings& settings, const std::string& suite) {
  try {
    return ReferencesWith(settings.Text("references"), suite);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMissingData) throw;
    throw Error(ErrorKind::kUsage, error.what());
  }
}

ScoreTable TableOf(std::span<const RunCurve> runs, const Settings& settings) {
  if (runs.empty()) {
    throw Error(ErrorKind::kMissingData,
                "this figure needs training runs: uper reproduce FIGURE RUN...");
  }
  const ReferenceScores references = ReferencesOf(settings, SuiteOf(runs.front().env));
  return ScoreTable(runs, references, settings.Integer("window"));
}

// All games of the suite: those with reference scores.
Names GamesOfSuite(const ScoreTable& table) {
  std::set<std::string> games(table.games().begin(), table.games().end());
  for (const auto& [env, score] : BuiltInReferenceScores()) {
    if (SuiteOf(env) == table.suite()) games.insert(GameOf(env));
  }
  return {games.begin(), games.end()};
}

PictureRequest RequestFor(const FigureContext& context, const ScoreTable& table,
                          const Names& agents, const Names& games) {
  return {.table = table,
          .folder = context.folder,
          .agents = table.Present(agents),
          .enlarged = EnlargedGames(table),
          .missing = MissingRuns(table, agents, games, table.seeds()),
          .published = context.settings.Flag("published"),
          .replications = context.settings.Integer("replications"),
          .run = [&context](std::size_t count, const std::function<void(std::size_t)>& task) {
            RunTasks(context, count, task);
          }};
}

std::string MissingSentence(const std::vector<MissingRun>& missing) {
  std::set<std::string> agents;
  for (const MissingRun& run : missing) agents.insert(run.agent);
  std::string text = std::to_string(missing.size()) + " runs are missing (missing.csv), of";
  for (const std::string& agent : agents) text += " " + agent;
  return text;
}

void WriteCommonFiles(const PictureRequest& request, const ScoreTable::Selection& shown) {
  FigureNotes notes{.agents = shown.agents, .games = shown.games, .enlarged = request.enlarged};
  if (!request.missing.empty()) notes.notes.push_back(MissingSentence(request.missing));
  if (shown.games.size() < request.table.games().size()) {
    notes.notes.push_back("aggregates are over the " + std::to_string(shown.games.size()) +
                          " games that all agents shown have");
  }
  for (const std::string& agent : request.agents) {
    const auto& kept = shown.agents;
    if (std::find(kept.begin(), kept.end(), agent) == kept.end()) {
      notes.notes.push_back(agent + " is left out: it has too few games in common with the others");
    } else if (request.table.CompleteSeeds(agent, shown.games).empty()) {
      notes.notes.push_back(agent + " has no seed with all games: no median by seed");
    }
  }
  WriteNotes(request.table, notes, request.folder / "about.json");
  WriteMissing(request.missing, request.folder / "missing.csv");
  if (request.published) {
    WritePublishedCurves(request.table, request.folder / "published.csv");
  } else {  // of an earlier run with another setting
    std::filesystem::remove(request.folder / "published.csv");
  }
}

// Each figure shows some agents; with none of them there is nothing to draw.
void RequireAgents(const ScoreTable& table, const Names& agents) {
  if (!table.Present(agents).empty()) return;
  std::string names;
  for (const std::string& agent : agents) names += " " + agent;
  throw Error(ErrorKind::kMissingData,
              "this figure needs runs of" + names + "; none of the given runs is of one of them");
}

std::vector<Claim> RunMedian(const FigureContext& context) {
  const ScoreTable table = TableOf(context.runs, context.settings);
  const PictureRequest request = RequestFor(context, table, kMedianAgents, GamesOfSuite(table));
  WriteMedianPicture(request);
  return MedianClaims(table);
}

std::vector<Claim> RunAblation(const FigureContext& context) {
  const ScoreTable table = TableOf(context.runs, context.settings);
  PictureRequest request = RequestFor(context, table, kAblationAgents, GamesOfSuite(table));
  request.enlarged.clear();
  WriteMedianPicture(request);
  return AblationClaims(table);
}

std::vector<Claim> RunBars(const FigureContext& context) {
  const ScoreTable table = TableOf(context.runs, context.settings);
  const PictureRequest request = RequestFor(context, table, kMedianAgents, GamesOfSuite(table));
  std::vector<AgentPair> pairs;
  for (const std::string& baseline : table.Present(kBaselines)) {
    pairs.push_back({"qr-ens-uper", baseline});
  }
  WriteBarsPicture(request, pairs);
  return BarsClaims(table, kBaselines);
}

std::vector<Claim> RunGames(const FigureContext& context) {
  const ScoreTable table = TableOf(context.runs, context.settings);
  const PictureRequest request = RequestFor(context, table, kMedianAgents, GamesOfSuite(table));
  WriteGamesPicture(request);
  return GamesClaims(table);
}

std::vector<Claim> RunC51(const FigureContext& context) {
  const ScoreTable table = TableOf(context.runs, context.settings);
  // The paper does not name its five games: those that either agent has.
  Names games;
  for (const std::string& game : table.games()) {
    for (const std::string& agent : table.Present(kC51Agents)) {
      if (!table.CompleteSeeds(agent, std::span(&game, 1)).empty()) {
        games.push_back(game);
        break;
      }
    }
  }
  const PictureRequest request = RequestFor(context, table, kC51Agents, games);
  WriteGamesPicture(request);
  return C51Claims(table);
}

// `needed`: lists of agents, of each of which at least one must be there.
Figure RunFigure(std::string id, std::string title, std::vector<Claim> (*run)(const FigureContext&),
                 std::vector<Names> needed) {
  return {.id = std::move(id),
          .title = std::move(title),
          .settings = RunSettings(),
          .run = run,
          .needs_runs = true,
          .check = [needed = std::move(needed)](std::span<const RunCurve> runs,
                                                const Settings& settings) {
            const ScoreTable table = TableOf(runs, settings);
            for (const Names& agents : needed) RequireAgents(table, agents);
          }};
}

}  // namespace

ReferenceScores ReferencesWith(const std::filesystem::path& file, const std::string& suite) {
  ReferenceScores scores = BuiltInReferenceScores();
  if (!file.empty()) {
    const ReferenceScores own =
        ParseReferenceScores(ReadText(file), file.string(), suite, EnvironmentsToScore());
    for (const auto& [env, score] : own) scores[env] = score;
  }
  return scores;
}

std::vector<std::string> EnlargedGames(const ScoreTable& table) {
  Names games;
  for (const char* game : {"asterix", "chopper_command", "breakout", "krull"}) {
    const Names& all = table.games();
    if (std::find(all.begin(), all.end(), game) != all.end()) games.emplace_back(game);
  }
  for (const std::string& game : table.games()) {
    if (games.size() >= kEnlargedGames) break;
    if (std::find(games.begin(), games.end(), game) == games.end()) games.push_back(game);
  }
  return games;
}

void WriteMedianPicture(const PictureRequest& request) {
  const ScoreTable::Selection shown = request.table.Comparable(request.agents);
  WriteAggregateCurves(request.table, shown.agents, shown.games, request.replications, request.run,
                       request.folder);
  WriteGameCurves(request.table, request.agents, request.folder / "games.csv");
  WriteCommonFiles(request, shown);
}

void WriteGamesPicture(const PictureRequest& request) {
  WriteGameCurves(request.table, request.agents, request.folder / "data.csv");
  WriteCommonFiles(request, {request.agents, request.table.games()});
}

void WriteBarsPicture(const PictureRequest& request, std::span<const AgentPair> pairs) {
  WriteImprovements(request.table, pairs, request.folder / "data.csv");
  WriteCommonFiles(request, {request.agents, request.table.games()});
}

Figure AtariMedianFigure() {
  return RunFigure("atari-median", "median over games, and four single games", RunMedian,
                   {kMedianAgents});
}
Figure AtariAblationFigure() {
  return RunFigure("atari-ablation", "the priority on the same ensemble", RunAblation,
                   {kAblationAgents});
}
Figure AtariBarsFigure() {
  return RunFigure("atari-bars", "cumulative improvement by game", RunBars,
                   {{"qr-ens-uper"}, kBaselines});
}
Figure AtariGamesFigure() {
  return RunFigure("atari-games", "all games", RunGames, {kMedianAgents});
}
Figure AtariC51Figure() {
  return RunFigure("atari-c51", "UPER and PER on C51", RunC51, {kC51Agents});
}

}  // namespace uper::experiments
