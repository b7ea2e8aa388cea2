#pragma once

#include <span>

#include "experiments/framework/figure.h"

namespace uper::experiments {

// `posterior`: an ensemble of 50 quantile regressors against the exact Bayesian posterior of the
// mean (paper, fig. ensemble_posterior). Writes data.csv (one row a seed and recorded number of
// samples) and quantiles.csv (the final quantiles). Tests claims 27, 28, 29.
Figure PosteriorFigure();

// Pearson's correlation; 0 where one of them is constant. REQUIRES: equal sizes, not empty.
double Correlation(std::span<const double> x, std::span<const double> y);

}  // namespace uper::experiments
