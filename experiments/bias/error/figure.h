#pragma once

#include <span>

#include "experiments/framework/figure.h"

namespace uper::experiments::bias::error {

// `bias-error`: mean and standard deviation, over the entries, of the squared difference between
// the biased and the true probability, against the bias C (paper, fig. bias_errors). Writes
// data.csv (panel,form,seed,bias,error_mean,error_sd), uniform.csv (the same of uniform sampling),
// closed_form.csv, crossings.csv and panels.csv. Tests claims 30b, 33, 34, 35, 36.
Figure MakeFigure();

// Where the curve `difference` (at ascending `positions`) last changes from positive to not
// positive, by linear interpolation. Returns the last position if the curve is positive at the end,
// and the first if it is never positive. REQUIRES: equal sizes, not empty.
double LastFallThroughZero(std::span<const double> positions, std::span<const double> difference);

}  // namespace uper::experiments::bias::error
