#pragma once

#include "uper/core/categorical.h"

namespace uper {

// Defines the meaning of a network's outputs, their comparison with the target, and the report on
// each sample. One struct describes every agent.

enum class HeadKind {
  kScalar,       // one value per member
  kQuantile,     // quantile values at the midpoints
  kCategorical,  // logits over fixed atoms
};

// The greedy action that the target of member k takes.
enum class TargetRule {
  kPerMember,  // the action of member k
  kEnsemble,   // the action of the mean over members
};

// How the losses L_bk of sample b and member k become one loss; w_b: importance weights, m_bk:
// masks. One byte, because kernels take a LossSpec as their argument.
enum class MemberWeighting : bool {
  kMean,  // sum_{b,k} w_b m_bk L_bk / max(1, sum_{b,k} m_bk)
  kSum,   // sum_{b,k} w_b m_bk L_bk / batch, as if each member were trained separately
};

// Which of the two decompositions of the paper gives the target uncertainty (uncertainty.h).
enum class TargetForm {
  kAtari,   // compares member k with its own target distribution
  kScalar,  // compares all members with the mean target
};

// The TD error of a sample.
enum class TdErrorKind {
  kMeanAbsolute,  // mean over members of |target mean - mean|
  kLoss,          // mean over members of the loss (cross-entropy clipped at 100)
};

// Bound on a cross-entropy that is used as a priority (from Rainbow).
inline constexpr double kLargestLossPriority = 100;

// How E and A are computed from categorical members (core/categorical.h).
enum class CategoricalUncertainty { kQuantiles, kTotalVariance, kAuthors };

struct LossSpec {
  HeadKind head = HeadKind::kQuantile;
  bool double_q = false;  // the online network chooses the target's action
  TargetRule target_rule = TargetRule::kPerMember;

  double huber_kappa = 1;  // quantile head; 0: the quantile loss without Huber's smoothing
  // Scalar head: bound on |weight * delta| in the gradient (DQN Zoo); 0: none.
  double td_gradient_bound = 1;
  AtomSupport support;  // categorical head; support.atoms is the number of outputs
  MemberWeighting member_weighting = MemberWeighting::kMean;

  TargetForm target_form = TargetForm::kAtari;
  TdErrorKind td_priority = TdErrorKind::kMeanAbsolute;
  CategoricalUncertainty categorical_uncertainty = CategoricalUncertainty::kQuantiles;
};

}  // namespace uper
