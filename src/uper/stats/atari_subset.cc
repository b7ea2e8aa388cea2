#include "uper/stats/atari_subset.h"

#include <algorithm>
#include <cmath>

namespace uper {

std::span<const AtariSubset> AtariSubsets() {
  static const std::vector<AtariSubset> subsets = {
      {"Atari-5",
       {{"battle_zone", 0.38198},
        {"double_dunk", 0.06791},
        {"name_this_game", 0.31080},
        {"phoenix", 0.12413},
        {"qbert", 0.08049}}},
      {"Atari-10",
       {{"battle_zone", 0.18882},
        {"double_dunk", 0.08519},
        {"name_this_game", 0.12870},
        {"phoenix", 0.16433},
        {"qbert", 0.05923},
        {"amidar", 0.08246},
        {"bowling", 0.05590},
        {"frostbite", 0.06913},
        {"kung_fu_master", 0.09862},
        {"riverraid", 0.04859}}},
  };
  return subsets;
}

std::optional<double> EstimatedMedian(
    const AtariSubset& subset,
    const std::function<std::optional<double>(std::string_view)>& percent_of) {
  double exponent = 0;
  for (const AtariSubset::Game& game : subset.games) {
    const std::optional<double> percent = percent_of(game.name);
    if (!percent) return std::nullopt;
    exponent += game.coefficient * std::log10(1 + std::max(*percent, 0.0));
  }
  return std::pow(10, exponent) - 1;
}

}  // namespace uper
