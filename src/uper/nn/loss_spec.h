#pragma once

#include "uper/core/categorical.h"

namespace uper {

// What the numbers that a network puts out mean, how they are compared with their target, and what
// the learner reports about each sample. One struct describes every agent.

enum class HeadKind {
  kScalar,       // one value a member
  kQuantile,     // quantile values at the midpoints
  kCategorical,  // logits over fixed atoms
};

// Whose greedy action the target of member k takes.
enum class TargetAction {
  kPerMember,  // member k's own
  kEnsemble,   // that of the mean over members, for all
};

// Which of the paper's two decompositions gives the target uncertainty (uncertainty.h).
enum class TargetForm {
  kAtari,   // member k against its own target distribution
  kScalar,  // all against the mean target
};

// What counts as the TD error of a sample.
enum class TdErrorKind {
  kMeanAbsolute,  // mean over members of |target mean - mean|
  kLoss,          // mean over members of the loss (cross-entropy clipped at 100)
};

// Rainbow's bound on a cross-entropy used as a priority.
inline constexpr double kLargestLossPriority = 100;

// How E and A come out of categorical members (core/categorical.h).
enum class CategoricalUncertainty { kQuantiles, kTotalVariance, kAuthors };

struct LossSpec {
  HeadKind head = HeadKind::kQuantile;
  bool double_q = false;  // the online network chooses the target's action
  TargetAction target_action = TargetAction::kPerMember;

  double huber_kappa = 1;  // quantile head; 0: the plain quantile loss
  // Scalar head: bound on |weight * delta| in the gradient (DQN Zoo); 0: none.
  double td_gradient_bound = 1;
  AtomSupport support;  // categorical head; support.atoms is the number of outputs
  // false: L = sum_{b,k} w_b m_bk L_bk / max(1, sum_{b,k} m_bk); true: ... / batch, as if each
  // member were trained alone.
  bool sum_members = false;

  TargetForm target_form = TargetForm::kAtari;
  TdErrorKind td_priority = TdErrorKind::kMeanAbsolute;
  CategoricalUncertainty categorical_uncertainty = CategoricalUncertainty::kQuantiles;
};

}  // namespace uper
