#pragma once

namespace uper {

// Adam, bias-corrected, epsilon outside the root; beta1 and beta2 are the two decays:
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
//   mhat = m / (1 - beta1^t),  vhat = v / (1 - beta2^t),
//   p -= rate * mhat / (sqrt(vhat) + epsilon).
struct AdamOptions {
  double learning_rate = 5e-5;
  double first_moment_decay = 0.9;
  double second_moment_decay = 0.999;
  double epsilon = 0.01 / 32;

  void Validate() const;  // throws Error(kUsage)
};

// Centered RMSProp, state from 0, no momentum and no bias correction:
//   m = decay m + (1 - decay) g,  v = decay v + (1 - decay) g^2,  s = max(0, v - m^2),
//   kInsideRoot:  p -= rate * g / sqrt(s + epsilon)     (DQN Zoo)
//   kOutsideRoot: p -= rate * g / (sqrt(s) + epsilon)   (PyTorch, MinAtar)
// s is a variance, but rounding can make v - m^2 negative.
enum class EpsilonPlacement { kInsideRoot, kOutsideRoot };

struct RmsPropOptions {
  double learning_rate = 2.5e-4;
  double decay = 0.95;
  double epsilon = 0.01 / (32 * 32);
  EpsilonPlacement epsilon_placement = EpsilonPlacement::kInsideRoot;

  void Validate() const;  // throws Error(kUsage)
};

// The factor for a gradient so that its L2 norm does not exceed max_norm: max_norm / norm if
// norm >= max_norm, else 1. REQUIRES: max_norm > 0.
double ClipScale(double norm, double max_norm);

}  // namespace uper
