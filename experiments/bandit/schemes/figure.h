#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::bandit::schemes {

// `bandit-schemes`: every priority rule, one at a time.
Figure MakeFigure();

}  // namespace uper::experiments::bandit::schemes
