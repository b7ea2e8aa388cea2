#include "experiments/atari/claims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "uper/stats/aggregate.h"

namespace uper::experiments {
namespace {

constexpr const char* kUper = "qr-ens-uper";
// "Throughout": at this share of the frame marks, or more.
constexpr double kThroughout = 0.95;
// "4 of 5 games": more than three of five, up to four of five.
constexpr double kFourOfFive = 0.7;

struct Comparison {
  std::string subject;
  std::string baseline;
  std::vector<std::string> games;   // that both have
  std::vector<std::int64_t> seeds;  // that both have in all these games
};

Comparison Compare(const ScoreTable& table, const std::string& subject,
                   const std::string& baseline) {
  const std::vector<std::string> both{subject, baseline};
  Comparison comparison{subject, baseline, table.CommonGames(both), {}};
  const auto a = table.CompleteSeeds(subject, comparison.games);
  const auto b = table.CompleteSeeds(baseline, comparison.games);
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::back_inserter(comparison.seeds));
  return comparison;
}

// What the statistic is over; says so when that is not the paper's suite.
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

// The claim that the statistic, one number a seed, is positive; untested where runs are missing.
Claim PairedClaim(const ScoreTable& table, ClaimText text, const Comparison& comparison,
                  const PerSeed& statistic) {
  if (comparison.games.empty() || comparison.seeds.empty()) {
    return Untested(std::move(text), "no seed of " + comparison.subject + " and " +
                                         comparison.baseline + " in the same games");
  }
  text.statistic += OverGames(table, comparison);
  std::vector<double> values;
  for (const std::int64_t seed : comparison.seeds) values.push_back(statistic(seed));
  return ClaimPositive(std::move(text), values);
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

// Mean over marks of the normalised score: subject - baseline in one game.
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

// Mean |difference| of the games where the subject is better minus that of the others; a side
// without games counts 0.
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

Claim AreaClaim(const ScoreTable& table, const std::string& baseline, std::string id,
                std::string statement, std::string where) {
  const Comparison comparison = Compare(table, kUper, baseline);
  return PairedClaim(
      table,
      {.id = std::move(id),
       .statement = std::move(statement),
       .where_in_paper = std::move(where),
       .statistic = "mean over frame marks of the median normalised score: " + comparison.subject +
                    " - " + baseline + "; > 0"},
      comparison,
      [&](std::int64_t seed) { return Mean(MedianDifference(table, comparison, seed)); });
}

Claim ThroughoutClaim(const ScoreTable& table, const std::string& baseline, std::string id) {
  const Comparison comparison = Compare(table, kUper, baseline);
  return PairedClaim(
      table,
      {.id = std::move(id),
       .statement = "The median of UPER is above that of " + baseline + " throughout",
       .where_in_paper = "L366",
       .statistic = "share of frame marks at which the median normalised score of " +
                    comparison.subject + " is above, minus 0.95; > 0"},
      comparison, [&](std::int64_t seed) {
        const std::vector<double> difference = MedianDifference(table, comparison, seed);
        const auto above = std::count_if(difference.begin(), difference.end(),
                                         [](double value) { return value > 0; });
        return static_cast<double>(above) / static_cast<double>(difference.size()) - kThroughout;
      });
}

Claim GameClaim(const ScoreTable& table, Comparison comparison, const std::string& game,
                double sign, std::string id, std::string statement, std::string where) {
  comparison.games = {game};
  const auto a = table.CompleteSeeds(comparison.subject, comparison.games);
  const auto b = table.CompleteSeeds(comparison.baseline, comparison.games);
  comparison.seeds.clear();
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::back_inserter(comparison.seeds));
  const std::string order = sign > 0 ? comparison.subject + " - " + comparison.baseline
                                     : comparison.baseline + " - " + comparison.subject;
  return PairedClaim(
      table,
      {.id = std::move(id),
       .statement = std::move(statement),
       .where_in_paper = std::move(where),
       .statistic = game + ": mean over frame marks of the normalised score: " + order + "; > 0"},
      comparison,
      [&](std::int64_t seed) { return sign * GameDifference(table, comparison, game, seed); });
}

std::string Lettered(const std::string& number, std::size_t index) {
  return number + static_cast<char>('a' + index);
}

}  // namespace

std::vector<Claim> MedianClaims(const ScoreTable& table) {
  std::vector<Claim> claims;
  const std::string baselines[] = {"per", "qr-dqn", "qr-per", "qr-ens-per"};
  for (std::size_t i = 0; i < std::size(baselines); ++i) {
    claims.push_back(ThroughoutClaim(table, baselines[i], Lettered("40", i)));
  }
  claims.push_back(AreaClaim(table, "qr-ens-per", "41a",
                             "UPER is above QR-ENS-PER: it is not the ensemble alone", "L380"));
  claims.push_back(AreaClaim(table, "qr-per", "41b",
                             "UPER is above QR-PER: it is not quantile regression alone", "L380"));
  return claims;
}

std::vector<Claim> AblationClaims(const ScoreTable& table) {
  std::vector<Claim> claims;
  const std::string baselines[] = {"qr-ens-uni", "qr-ens-epi", "qr-ens-per"};
  for (std::size_t i = 0; i < std::size(baselines); ++i) {
    claims.push_back(AreaClaim(table, baselines[i], Lettered("42", i),
                               "On the same ensemble UPER is above " + baselines[i], "L1182"));
  }
  return claims;
}

std::vector<Claim> BarsClaims(const ScoreTable& table, std::span<const std::string> baselines) {
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < baselines.size(); ++i) {
    const Comparison comparison = Compare(table, kUper, baselines[i]);
    claims.push_back(PairedClaim(
        table,
        {.id = Lettered("44", i),
         .statement = "UPER is better than " + baselines[i] + " in most games",
         .where_in_paper = "L380",
         .statistic = "share of games with the larger mean normalised score over frame marks, "
                      "minus 0.5; > 0"},
        comparison,
        [&](std::int64_t seed) { return ShareOfGamesAbove(table, comparison, seed) - 0.5; }));
    claims.push_back(PairedClaim(
        table,
        {.id = Lettered("45", i),
         .statement = "Where UPER is worse than " + baselines[i] + ", it is so by less",
         .where_in_paper = "L366, L380",
         .statistic = "mean absolute difference of the mean normalised score: games where UPER is "
                      "better - games where it is not; > 0"},
        comparison, [&](std::int64_t seed) { return Asymmetry(table, comparison, seed); }));
  }
  return claims;
}

std::vector<Claim> GamesClaims(const ScoreTable& table) {
  struct Named {
    const char* game;
    double sign;
    const char* words;
  };
  const Named named[] = {{"asterix", 1, "vastly superior"},
                         {"chopper_command", 1, "vastly superior"},
                         {"breakout", -1, "worse"},
                         {"krull", -1, "worse"}};
  const std::string baselines[] = {"per", "qr-dqn"};
  std::vector<Claim> claims;
  for (const Named& entry : named) {
    for (const std::string& baseline : baselines) {
      const std::string id = Lettered("46", claims.size());
      const std::string statement =
          std::string("UPER is ") + entry.words + " in " + entry.game + ", against " + baseline;
      claims.push_back(table.suite() == "atari"
                           ? GameClaim(table, Compare(table, kUper, baseline), entry.game,
                                       entry.sign, id, statement, "L366")
                           : Untested({id, statement, "L366", "mean normalised score"},
                                      "the runs are on " + table.suite()));
    }
  }
  return claims;
}

std::vector<Claim> C51Claims(const ScoreTable& table) {
  const Comparison comparison = Compare(table, "c51-ens-uper", "c51-ens-per");
  std::vector<Claim> claims;
  claims.push_back(PairedClaim(
      table,
      {.id = "43",
       .statement = "C51 with UPER is better than C51 with PER in 4 of 5 games",
       .where_in_paper = "L1227",
       .statistic = "share of games with the larger mean normalised score over frame marks, minus "
                    "0.7 (between three and four of five); > 0"},
      comparison,
      [&](std::int64_t seed) { return ShareOfGamesAbove(table, comparison, seed) - kFourOfFive; }));
  for (std::size_t i = 0; i < comparison.games.size(); ++i) {
    const std::string& game = comparison.games[i];
    claims.push_back(GameClaim(table, comparison, game, 1, "43-" + game,
                               "C51 with UPER is better than C51 with PER in " + game, "L1227"));
  }
  return claims;
}

}  // namespace uper::experiments
