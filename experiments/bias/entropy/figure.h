#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::bias::entropy {

// `bias-entropy`: entropy of the priority distribution against the bias C, four forms, eight pairs
// of densities (paper, fig. bias_entropies). Writes data.csv (panel,form,seed,bias,entropy),
// closed_form.csv and panels.csv. Tests claims 30a, 31, 32, 37.
Figure MakeFigure();

}  // namespace uper::experiments::bias::entropy
