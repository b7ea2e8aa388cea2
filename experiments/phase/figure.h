#pragma once

#include <span>
#include <vector>

#include "experiments/framework/figure.h"
#include "uper/core/priority.h"

namespace uper::experiments::phase {

// `phase`: each priority made of E and A alone, over a grid of both. Writes data.csv
// (rule,epistemic,aleatoric,priority) and elasticity.csv (rule,smallest,largest). Tests claim 38.
// Nothing is random, so one seed is enough.
Figure MakeFigure();

// The rules of the figure.
std::span<const PriorityRule> PhaseRules();

// The priority of an item with this E and A (and U = E + A), without effective floor and cap.
double PhasePriority(PriorityRule rule, double epistemic, double aleatoric);

// How a priority changes along lines of equal ratio E / A:
//   d ln p(s E, s A) / d ln s, taken between s = 1 and s = 2.
// 0: constant along the line; negative: low epistemic uncertainty is preferred; positive: high.
double DiagonalElasticity(PriorityRule rule, double epistemic, double aleatoric);

// Smallest and largest elasticity of a rule over all pairs from `grid`.
struct ElasticityRange {
  double smallest = 0;
  double largest = 0;
};
ElasticityRange DiagonalElasticities(PriorityRule rule, std::span<const double> grid);

}  // namespace uper::experiments::phase
