#include "experiments/atari/figure.h"
#include "experiments/bandit/figure.h"
#include "experiments/bandit/schemes/figure.h"
#include "experiments/bandit/shifted/figure.h"
#include "experiments/bandit/uncertainty/figure.h"
#include "experiments/bias/entropy/figure.h"
#include "experiments/bias/error/figure.h"
#include "experiments/cost_table/figure.h"
#include "experiments/direct_variance/figure.h"
#include "experiments/framework/figure.h"
#include "experiments/gridworld/figure.h"
#include "experiments/phase/figure.h"
#include "experiments/posterior/figure.h"

namespace uper::experiments {
namespace {

std::vector<Figure> MakeAll() {
  std::vector<Figure> figures = {bandit::MakeFigure(),          bandit::schemes::MakeFigure(),
                                 bandit::shifted::MakeFigure(), bandit::uncertainty::MakeFigure(),
                                 gridworld::MakeFigure(),       posterior::MakeFigure(),
                                 bias::entropy::MakeFigure(),   bias::error::MakeFigure(),
                                 phase::MakeFigure(),           direct_variance::MakeFigure(),
                                 cost_table::MakeFigure()};
  for (Figure& figure : atari::MakeFigures()) figures.push_back(std::move(figure));
  return figures;
}

}  // namespace

const std::vector<Figure>& AllFigures() {
  static const std::vector<Figure> figures = MakeAll();
  return figures;
}

}  // namespace uper::experiments
