#include "uper/nn/optimizer.h"

#include <cmath>
#include <string>

#include "uper/base/check.h"

namespace uper {
namespace {

void Require(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorKind::kUsage, "optimizer: " + message);
}

bool IsFraction(double value) { return value >= 0 && value < 1; }
bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

void AdamOptions::Validate() const {
  Require(IsPositive(learning_rate), "learning_rate must be positive");
  Require(IsFraction(first_moment_decay), "first_moment_decay must be at least 0 and below 1");
  Require(IsFraction(second_moment_decay), "second_moment_decay must be at least 0 and below 1");
  Require(IsPositive(epsilon), "epsilon must be positive");
}

void RmsPropOptions::Validate() const {
  Require(IsPositive(learning_rate), "learning_rate must be positive");
  Require(IsFraction(decay), "decay must be at least 0 and below 1");
  Require(IsPositive(epsilon), "epsilon must be positive");
}

double ClipScale(double norm, double max_norm) {
  UPER_CHECK(max_norm > 0, "the largest norm must be positive");
  return norm >= max_norm ? max_norm / norm : 1;
}

}  // namespace uper
