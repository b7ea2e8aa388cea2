#include "experiments/atari/figures.h"
#include "experiments/bandit/figures.h"
#include "experiments/bias/bias_entropy_figure.h"
#include "experiments/bias/bias_error_figure.h"
#include "experiments/cost_table/figure.h"
#include "experiments/direct_variance/direct_variance_figure.h"
#include "experiments/framework/figure.h"
#include "experiments/gridworld/figure.h"
#include "experiments/phase/figure.h"
#include "experiments/posterior/figure.h"

namespace uper::experiments {

const std::vector<Figure>& AllFigures() {
  static const std::vector<Figure> figures = {BanditFigure(),        BanditSchemesFigure(),
                                              BanditShiftedFigure(), BanditUncertaintyFigure(),
                                              GridworldFigure(),     PosteriorFigure(),
                                              BiasEntropyFigure(),   BiasErrorFigure(),
                                              PhaseFigure(),         DirectVarianceFigure(),
                                              CostTableFigure(),     AtariMedianFigure(),
                                              AtariAblationFigure(), AtariBarsFigure(),
                                              AtariGamesFigure(),    AtariC51Figure()};
  return figures;
}

}  // namespace uper::experiments
