#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::posterior {

// `posterior`: an ensemble of 50 quantile regressors against the exact Bayesian posterior of the
// mean (paper, fig. ensemble_posterior). Writes data.csv (one row per seed and recorded number of
// samples) and quantiles.csv (the final quantiles). Tests claims 27, 28, 29.
Figure MakeFigure();

}  // namespace uper::experiments::posterior
