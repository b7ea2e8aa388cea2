#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::bandit::shifted {

// `bandit-shifted`: distinct means per arm; what the distance to the target adds to each form.
Figure MakeFigure();

}  // namespace uper::experiments::bandit::shifted
