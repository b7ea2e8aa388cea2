#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace uper {

// A few games from which the median over all 57 can be estimated (Aitchison et al. 2023):
//   10^(sum_i c_i * log10(1 + max(s_i, 0))) - 1, all scores in percent of the human-normalized.
struct AtariSubset {
  struct Game {
    std::string_view name;
    double coefficient;
  };
  std::string_view name;  // "Atari-5"
  std::vector<Game> games;
};

// Atari-5 and Atari-10.
std::span<const AtariSubset> AtariSubsets();

// The estimate, in percent; `percent_of(game)` gives the normalized score of a game or nothing.
// Returns nothing if a game is missing. Use it to rank agents under one protocol, not as an
// absolute value.
std::optional<double> EstimatedMedian(
    const AtariSubset& subset,
    const std::function<std::optional<double>(std::string_view)>& percent_of);

}  // namespace uper
