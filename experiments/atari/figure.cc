#include "experiments/atari/figure.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "experiments/atari/claims.h"
#include "uper/base/error.h"
#include "uper/base/files/read_text.h"
#include "uper/envs/registry.h"
#include "uper/stats/smoothing.h"

namespace uper::experiments::atari {
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
      NumberSetting("window", Type::kInteger, kSmoothingWindow, 1, 1e6,
                    "evaluations in the trailing mean of a curve (1: not smoothed)"),
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
      NumberSetting("replications", Type::kInteger, 2000, 0, 1e6,
                    "resamples of the stratified bootstrap at each frame mark"),
  };
}

std::string ReadReferenceText(const std::filesystem::path& file) {
  std::optional<std::string> text = ReadText(file);
  if (!text) {
    throw Error(ErrorKind::kMissingData, "cannot read the reference scores " + file.string());
  }
  return *std::move(text);
}

// Environments that may have reference scores: the environments of this build, and games that only
// another build can play.
Names EnvironmentsToScore() {
  Names names = EnvironmentNames();
  for (const auto& [env, score] : BuiltInReferenceScores()) {
    if (std::find(names.begin(), names.end(), env) == names.end()) names.push_back(env);
  }
  return names;
}

// A file that does not exist is a wrong value of the setting, hence a usage error. `reproduce all`
// would silently leave the figure out if it were missing data.
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

// All games of the suite that have reference scores.
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
  } else {  // an earlier run with another setting may have left it
    std::filesystem::remove(request.folder / "published.csv");
  }
}

// A figure has nothing to draw if none of its agents has runs.
void RequireAgents(const ScoreTable& table, const Names& agents) {
  if (!table.Present(agents).empty()) return;
  std::string names;
  for (const std::string& agent : agents) names += " " + agent;
  throw Error(ErrorKind::kMissingData,
              "this figure needs runs of" + names + "; none of the given runs is of one of them");
}

// The paper does not name the five games of its C51 figure, so we take those that either agent has.
Names GamesOfC51(const ScoreTable& table) {
  Names games;
  for (const std::string& game : table.games()) {
    const Names agents = table.Present(kC51Agents);
    if (std::any_of(agents.begin(), agents.end(), [&](const std::string& agent) {
          return !table.CompleteSeeds(agent, std::span(&game, 1)).empty();
        })) {
      games.push_back(game);
    }
  }
  return games;
}

void WriteAblationPicture(PictureRequest request) {
  request.enlarged.clear();
  WriteMedianPicture(request);
}

void WriteBaselineBars(const PictureRequest& request) {
  std::vector<AgentPair> pairs;
  for (const std::string& baseline : request.table.Present(kBaselines)) {
    pairs.push_back({"qr-ens-uper", baseline});
  }
  WriteBarsPicture(request, pairs);
}

// One figure made from training runs.
struct RunsFigure {
  const char* id;
  const char* title;
  Names agents;               // shown if they have runs
  std::vector<Names> needed;  // of each list at least one agent must have runs
  Names (*games)(const ScoreTable&);
  std::function<void(const PictureRequest&)> write;
  std::function<std::vector<Claim>(const ScoreTable&)> claims;
};

std::vector<RunsFigure> RunsFigures() {
  return {{"atari-median",
           "median over games, and four single games",
           kMedianAgents,
           {kMedianAgents},
           GamesOfSuite,
           WriteMedianPicture,
           MedianClaims},
          {"atari-ablation",
           "the priority on the same ensemble",
           kAblationAgents,
           {kAblationAgents},
           GamesOfSuite,
           WriteAblationPicture,
           AblationClaims},
          {"atari-bars",
           "cumulative improvement by game",
           kMedianAgents,
           {{"qr-ens-uper"}, kBaselines},
           GamesOfSuite,
           WriteBaselineBars,
           [](const ScoreTable& table) { return BarsClaims(table, kBaselines); }},
          {"atari-games",
           "all games",
           kMedianAgents,
           {kMedianAgents},
           GamesOfSuite,
           WriteGamesPicture,
           GamesClaims},
          {"atari-c51",
           "UPER and PER on C51",
           kC51Agents,
           {kC51Agents},
           GamesOfC51,
           WriteGamesPicture,
           C51Claims}};
}

Figure FigureFrom(const RunsFigure& entry) {
  return {.id = entry.id,
          .title = entry.title,
          .settings = RunSettings(),
          .run =
              [entry](const FigureContext& context) {
                const ScoreTable table = TableOf(context.runs, context.settings);
                entry.write(RequestFor(context, table, entry.agents, entry.games(table)));
                return entry.claims(table);
              },
          .needs_runs = true,
          .check =
              [needed = entry.needed](std::span<const RunCurve> runs, const Settings& settings) {
                const ScoreTable table = TableOf(runs, settings);
                for (const Names& agents : needed) RequireAgents(table, agents);
              }};
}

}  // namespace

ReferenceScores ReferencesWith(const std::filesystem::path& file, const std::string& suite) {
  ReferenceScores scores = BuiltInReferenceScores();
  if (!file.empty()) {
    const ReferenceScores own =
        ParseReferenceScores(ReadReferenceText(file), file.string(), suite, EnvironmentsToScore());
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

std::vector<Figure> MakeFigures() {
  std::vector<Figure> figures;
  for (const RunsFigure& entry : RunsFigures()) figures.push_back(FigureFrom(entry));
  return figures;
}

}  // namespace uper::experiments::atari
