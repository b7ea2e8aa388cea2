#include "experiments/atari/claims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "uper/stats/aggregate.h"

namespace uper::experiments::atari {
namespace {

constexpr const char* kUper = "qr-ens-uper";
// "Throughout" means at this share of the frame marks or more.
constexpr double kThroughout = 0.95;
// "4 of 5 games" means more than three of five.
constexpr double kFourOfFive = 0.7;

struct Comparison {
  std::string subject;
  std::string baseline;
  std::vector<std::string> games;
  std::vector<std::int64_t> seeds;  // both agents have them in all these games
};

// Over these games.
Comparison CompareIn(const ScoreTable& table, const std::string& subject,
                     const std::string& baseline, std::vector<std::string> games) {
  Comparison comparison{subject, baseline, std::move(games), {}};
  const auto a = table.CompleteSeeds(subject, comparison.games);
  const auto b = table.CompleteSeeds(baseline, comparison.games);
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::back_inserter(comparison.seeds));
  return comparison;
}

// Over all games that both have.
Comparison Compare(const ScoreTable& table, const std::string& subject,
                   const std::string& baseline) {
  return CompareIn(table, subject, baseline,
                   table.CommonGames(std::vector<std::string>{subject, baseline}));
}

// The games and seeds of the statistic. Names the suite if it is not the paper's.
std::string OverGames(const ScoreTable& table, const Comparison& comparison) {
  const std::string suite = table.suite() == "atari" ? "" : " of " + table.suite();
  const auto counted = [](std::size_t count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  return " (" + counted(comparison.games.size(), "game") + suite + ", " +
         counted(comparison.seeds.size(), "paired seed") + ")";
}

Claim Untested(ClaimText text, const std::string& why) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {.id = std::move(text.id),
          .statement = std::move(text.statement),
          .where_in_paper = std::move(text.where_in_paper),
          .statistic = text.statistic + "; not tested: " + why,
          .interval = {.value = kNone, .low = kNone, .high = kNone},
          .verdict = Verdict::kUndecided};
}

using PerSeed = std::function<double(std::int64_t seed)>;

// Tests that the statistic, one number per seed, is positive. Untested where runs are missing.
ClaimTest Paired(const ScoreTable& table, Comparison comparison, PerSeed statistic) {
  return [&table, comparison = std::move(comparison),
          statistic = std::move(statistic)](const ClaimText& text) {
    if (comparison.games.empty() || comparison.seeds.empty()) {
      return std::vector{Untested(text, "no seed of " + comparison.subject + " and " +
                                            comparison.baseline + " in the same games")};
    }
    ClaimText with_games = text;
    with_games.statistic += OverGames(table, comparison);
    std::vector<double> values;
    for (const std::int64_t seed : comparison.seeds) values.push_back(statistic(seed));
    return std::vector{ClaimPositive(std::move(with_games), values)};
  };
}

// [mark] median(subject) - median(baseline) of one seed.
std::vector<double> MedianDifference(const ScoreTable& table, const Comparison& comparison,
                                     std::int64_t seed) {
  std::vector<double> difference = table.MedianCurve(comparison.subject, comparison.games, seed);
  const std::vector<double> baseline =
      table.MedianCurve(comparison.baseline, comparison.games, seed);
  std::transform(difference.begin(), difference.end(), baseline.begin(), difference.begin(),
                 std::minus<>());
  return difference;
}

// Mean over marks of the normalized score in one game: subject - baseline.
double GameDifference(const ScoreTable& table, const Comparison& comparison,
                      const std::string& game, std::int64_t seed) {
  return Mean(table.Find(comparison.subject, game, seed)->normalized) -
         Mean(table.Find(comparison.baseline, game, seed)->normalized);
}

double ShareOfGamesAbove(const ScoreTable& table, const Comparison& comparison, std::int64_t seed) {
  const auto above = std::count_if(
      comparison.games.begin(), comparison.games.end(),
      [&](const auto& game) { return GameDifference(table, comparison, game, seed) > 0; });
  return static_cast<double>(above) / static_cast<double>(comparison.games.size());
}

// Mean |difference| of the games where the subject is better, minus that of the other games. A side
// without games counts as 0.
double Asymmetry(const ScoreTable& table, const Comparison& comparison, std::int64_t seed) {
  double sums[2] = {0, 0};
  int counts[2] = {0, 0};
  for (const std::string& game : comparison.games) {
    const double difference = GameDifference(table, comparison, game, seed);
    const int side = difference > 0 ? 0 : 1;
    sums[side] += std::abs(difference);
    ++counts[side];
  }
  return sums[0] / std::max(counts[0], 1) - sums[1] / std::max(counts[1], 1);
}

std::string Lettered(const std::string& number, std::size_t index) {
  return number + static_cast<char>('a' + index);
}

// Is UPER above the baseline on average over frame marks?
ClaimRow AreaRow(const ScoreTable& table, const std::string& baseline, std::string id,
                 std::string statement, std::string where) {
  const Comparison comparison = Compare(table, kUper, baseline);
  return {{.id = std::move(id),
           .statement = std::move(statement),
           .where_in_paper = std::move(where),
           .statistic = "mean over frame marks of the median normalized score: " +
                        comparison.subject + " - " + baseline + "; > 0"},
          Paired(table, comparison, [&table, comparison](std::int64_t seed) {
            return Mean(MedianDifference(table, comparison, seed));
          })};
}

// Is UPER above the baseline at nearly all frame marks?
ClaimRow ThroughoutRow(const ScoreTable& table, const std::string& baseline, std::string id) {
  const Comparison comparison = Compare(table, kUper, baseline);
  return {{.id = std::move(id),
           .statement = "The median of UPER is above that of " + baseline + " throughout",
           .where_in_paper = "L366",
           .statistic = "share of frame marks at which the median normalized score of " +
                        comparison.subject + " is above, minus 0.95; > 0"},
          Paired(table, comparison, [&table, comparison](std::int64_t seed) {
            const std::vector<double> difference = MedianDifference(table, comparison, seed);
            const auto above = std::count_if(difference.begin(), difference.end(),
                                             [](double value) { return value > 0; });
            return static_cast<double>(above) / static_cast<double>(difference.size()) -
                   kThroughout;
          })};
}

// In how many games is the subject better?
ClaimTest MoreGames(const ScoreTable& table, const Comparison& comparison, double share) {
  return Paired(table, comparison, [&table, comparison, share](std::int64_t seed) {
    return ShareOfGamesAbove(table, comparison, seed) - share;
  });
}

// Is the subject better (sign 1) or worse (sign -1) in one game?
ClaimRow GameRow(const ScoreTable& table, const Comparison& of_all_games, const std::string& game,
                 double sign, ClaimText text) {
  const Comparison comparison =
      CompareIn(table, of_all_games.subject, of_all_games.baseline, {game});
  const std::string order = sign > 0 ? comparison.subject + " - " + comparison.baseline
                                     : comparison.baseline + " - " + comparison.subject;
  text.statistic = game + ": mean over frame marks of the normalized score: " + order + "; > 0";
  return {std::move(text),
          Paired(table, comparison, [&table, comparison, game, sign](std::int64_t seed) {
            return sign * GameDifference(table, comparison, game, seed);
          })};
}

}  // namespace

std::vector<Claim> MedianClaims(const ScoreTable& table) {
  std::vector<ClaimRow> rows;
  for (const char* baseline : {"per", "qr-dqn", "qr-per", "qr-ens-per"}) {
    rows.push_back(ThroughoutRow(table, baseline, Lettered("40", rows.size())));
  }
  rows.push_back(AreaRow(table, "qr-ens-per", "41a",
                         "UPER is above QR-ENS-PER: it is not the ensemble alone", "L380"));
  rows.push_back(AreaRow(table, "qr-per", "41b",
                         "UPER is above QR-PER: it is not quantile regression alone", "L380"));
  return TestClaims(rows);
}

std::vector<Claim> AblationClaims(const ScoreTable& table) {
  std::vector<ClaimRow> rows;
  for (const std::string baseline : {"qr-ens-uni", "qr-ens-epi", "qr-ens-per"}) {
    rows.push_back(AreaRow(table, baseline, Lettered("42", rows.size()),
                           "On the same ensemble UPER is above " + baseline, "L1182"));
  }
  return TestClaims(rows);
}

std::vector<Claim> BarsClaims(const ScoreTable& table, std::span<const std::string> baselines) {
  std::vector<ClaimRow> rows;
  for (std::size_t i = 0; i < baselines.size(); ++i) {
    const Comparison comparison = Compare(table, kUper, baselines[i]);
    rows.push_back({{.id = Lettered("44", i),
                     .statement = "UPER is better than " + baselines[i] + " in most games",
                     .where_in_paper = "L380",
                     .statistic = "share of games with the larger mean normalized score over frame "
                                  "marks, minus 0.5; > 0"},
                    MoreGames(table, comparison, 0.5)});
    rows.push_back({{.id = Lettered("45", i),
                     .statement = "Where UPER is worse than " + baselines[i] + ", it is so by less",
                     .where_in_paper = "L366, L380",
                     .statistic = "mean absolute difference of the mean normalized score: games "
                                  "where UPER is better - games where it is not; > 0"},
                    Paired(table, comparison, [&table, comparison](std::int64_t seed) {
                      return Asymmetry(table, comparison, seed);
                    })});
  }
  return TestClaims(rows);
}

std::vector<Claim> GamesClaims(const ScoreTable& table) {
  struct NamedGame {
    const char* game;
    double sign;
    const char* words;
  };
  std::vector<ClaimRow> rows;
  for (const NamedGame& named : {NamedGame{"asterix", 1, "vastly superior"},
                                 {"chopper_command", 1, "vastly superior"},
                                 {"breakout", -1, "worse"},
                                 {"krull", -1, "worse"}}) {
    for (const std::string baseline : {"per", "qr-dqn"}) {
      ClaimText text = {.id = Lettered("46", rows.size()),
                        .statement = std::string("UPER is ") + named.words + " in " + named.game +
                                     ", against " + baseline,
                        .where_in_paper = "L366",
                        .statistic = "mean normalized score"};
      if (table.suite() == "atari") {
        rows.push_back(GameRow(table, Compare(table, kUper, baseline), named.game, named.sign,
                               std::move(text)));
      } else {
        rows.push_back({std::move(text), [&table](const ClaimText& row) {
                          return std::vector{Untested(row, "the runs are on " + table.suite())};
                        }});
      }
    }
  }
  return TestClaims(rows);
}

std::vector<Claim> C51Claims(const ScoreTable& table) {
  const Comparison comparison = Compare(table, "c51-ens-uper", "c51-ens-per");
  std::vector<ClaimRow> rows = {
      {{.id = "43",
        .statement = "C51 with UPER is better than C51 with PER in 4 of 5 games",
        .where_in_paper = "L1227",
        .statistic = "share of games with the larger mean normalized score over frame marks, minus "
                     "0.7 (between three and four of five); > 0"},
       MoreGames(table, comparison, kFourOfFive)}};
  for (const std::string& game : comparison.games) {
    rows.push_back(GameRow(table, comparison, game, 1,
                           {.id = "43-" + game,
                            .statement = "C51 with UPER is better than C51 with PER in " + game,
                            .where_in_paper = "L1227",
                            .statistic = ""}));
  }
  return TestClaims(rows);
}

}  // namespace uper::experiments::atari
