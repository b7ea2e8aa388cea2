#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::bandit {

// `bandit`: the paper's main bandit figure with the cone, four schemes, uniform draws and the
// identical start. It shows that error-driven replay chases noise while information gain does not.
Figure MakeFigure();

}  // namespace uper::experiments::bandit
