#include "uper/stats/reference_scores.h"

#include "uper/base/error.h"
#include "uper/stats/csv_reader.h"
#include "uper/stats/data_files.h"

namespace uper {

double NormalizedScore(double score, const ReferenceScore& reference) {
  return (score - reference.random) / (reference.reference - reference.random);
}

ReferenceScores ParseReferenceScores(std::string_view text, const std::string& source,
                                     std::string_view suite) {
  const CsvTable table(text, source);
  const std::optional<std::size_t> env = table.Find("env");
  const std::size_t name = env ? *env : table.Column("game");
  const std::size_t random = table.Column("random");
  const std::optional<std::size_t> human = table.Find("human");
  const std::size_t reference = human ? *human : table.Column("reference");
  ReferenceScores scores;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string key = (env ? "" : std::string(suite) + "/") + table.Text(row, name);
    const std::optional<double> low = table.Number(row, random);
    const std::optional<double> high = table.Number(row, reference);
    if (!low || !high || *low == *high) {
      throw Error(ErrorKind::kUsage, source + ": " + key +
                                         " needs two different scores, `random` and `human` (or "
                                         "`reference`)");
    }
    scores[key] = {.random = *low, .reference = *high};
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
