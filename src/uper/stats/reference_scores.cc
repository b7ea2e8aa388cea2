#include "uper/stats/reference_scores.h"

#include <algorithm>

#include "uper/base/did_you_mean.h"
#include "uper/base/error.h"
#include "uper/stats/csv_reader.h"
#include "uper/stats/data_files.h"

namespace uper {
namespace {

void CheckKnown(const std::string& env, std::span<const std::string> known,
                const std::string& where) {
  if (known.empty() || std::find(known.begin(), known.end(), env) != known.end()) return;
  throw Error(ErrorKind::kUsage,
              where + ": there is no environment '" + env + "'" + DidYouMean(env, known));
}

// The user wrote the file: a cell without a number is a usage error, not damage.
std::optional<double> ScoreIn(const CsvTable& table, std::size_t row, std::size_t column) {
  try {
    return table.Number(row, column);
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.what());
  }
}

}  // namespace

double NormalizedScore(double score, const ReferenceScore& reference) {
  return (score - reference.random) / (reference.reference - reference.random);
}

ReferenceScores ParseReferenceScores(std::string_view text, const std::string& source,
                                     std::string_view suite, std::span<const std::string> known) {
  const CsvTable table(text, source);
  const std::optional<std::size_t> env = table.Find("env");
  const std::size_t name = env ? *env : table.Column("game");
  const std::size_t random = table.Column("random");
  const std::optional<std::size_t> human = table.Find("human");
  const std::size_t reference = human ? *human : table.Column("reference");
  ReferenceScores scores;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string key = (env ? "" : std::string(suite) + "/") + table.Text(row, name);
    const std::string where = source + ":" + std::to_string(row + 2);
    CheckKnown(key, known, where);
    const std::optional<double> low = ScoreIn(table, row, random);
    const std::optional<double> high = ScoreIn(table, row, reference);
    if (!low || !high || *low == *high) {
      throw Error(ErrorKind::kUsage, where + ": " + key +
                                         " needs two different scores, `random` and `human` (or "
                                         "`reference`)");
    }
    const bool is_new = scores.emplace(key, ReferenceScore{*low, *high}).second;
    if (!is_new) {
      throw Error(ErrorKind::kUsage, where + ": " + key + " is there already, further up");
    }
  }
  return scores;
}

ReferenceScores BuiltInReferenceScores() {
  constexpr std::string_view kAtari = "atari57-human-random.csv";
  constexpr std::string_view kMinAtar = "minatar-scores.csv";
  ReferenceScores scores = ParseReferenceScores(DataFileText(kAtari), std::string(kAtari), "atari");
  scores.merge(ParseReferenceScores(DataFileText(kMinAtar), std::string(kMinAtar), "minatar"));
  return scores;
}

}  // namespace uper
