#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::bandit::shifted {

// `bandit-shifted`: every arm has another mean. It shows what the distance to the target adds to
// each form.
Figure MakeFigure();

}  // namespace uper::experiments::bandit::shifted
