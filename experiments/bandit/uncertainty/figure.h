#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::bandit::uncertainty {

// `bandit-uncertainty`: E, squared target distance and A of each arm over time.
Figure MakeFigure();

}  // namespace uper::experiments::bandit::uncertainty
