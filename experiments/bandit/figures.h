#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments {

// `bandit`: the cone, four schemes and uniform draws, and the identical start.
Figure BanditFigure();
// `bandit-schemes`: every priority of the list.
Figure BanditSchemesFigure();
// `bandit-shifted`: distinct means; what the distance to the target adds to each form.
Figure BanditShiftedFigure();
// `bandit-uncertainty`: E, target distance and A of each arm over time.
Figure BanditUncertaintyFigure();

}  // namespace uper::experiments
