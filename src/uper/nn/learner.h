#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "uper/core/uncertainty.h"
#include "uper/nn/loss_spec.h"
#include "uper/nn/network_spec.h"
#include "uper/nn/optimizer.h"
#include "uper/nn/parameter_layout.h"
#include "uper/nn/precision.h"

namespace uper {

// All settings of an update. To the learner, an agent is no more than these numbers.
struct LearnerSpec {
  NetworkSpec network;
  LossSpec loss;
  std::variant<AdamOptions, RmsPropOptions> optimizer;
  double max_global_norm = 0;  // larger gradients are scaled down to this norm; 0: never
  int batch = 32;
  Precision precision = Precision::kFp32;  // on a GPU

  // Throws Error(kUsage) that names the field.
  void Validate() const;
};

// Transitions to learn from, in memory of the caller. REQUIRES: `batch` entries each; observations
// [batch, observation] as NetworkSpec::input says.
struct LearnerBatch {
  std::span<const std::byte> s_tm1;
  std::span<const std::byte> s_t;
  std::span<const std::int32_t> a_tm1;
  std::span<const float> r_t;
  std::span<const float> discount_t;
  std::span<const float> weights;        // importance weights
  std::span<const std::uint64_t> masks;  // bit k: member k learns from the sample
};

// Results of an update, computed with the parameters before it. The spans belong to the learner and
// are valid until its next call.
struct LearnerOutput {
  double loss = 0;
  double gradient_norm = 0;                  // before clipping
  std::span<const double> td_error;          // [batch], as LossSpec::td_priority says
  std::span<const Uncertainty> uncertainty;  // [batch]
};

// All numbers that a learner keeps from one update to the next. Buffers are laid out as layout()
// says.
struct LearnerState {
  std::span<float> online;
  std::span<float> target;
  std::span<float> first_moment;   // m of the optimizer
  std::span<float> second_moment;  // v of the optimizer
  std::int64_t updates = 0;
};

// Learns from batches and computes action values. A pure function of its state and its inputs: it
// draws no random numbers and writes no priorities. Not thread-safe. MakeCpuLearner() and
// MakeGpuLearner() make one.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual const LearnerSpec& spec() const = 0;
  virtual const ParameterLayout& layout() const = 0;

  // One update of the parameters. Throws Error(kNumeric) and changes nothing when the loss or the
  // gradient is not finite.
  virtual LearnerOutput Update(const LearnerBatch& batch) = 0;
  // The gradient of the last Update(), before clipping; valid until the next call. A learner may
  // compute it again here. REQUIRES: an Update().
  virtual std::span<const float> gradient() = 0;

  // q [count, action]: the value of each action by the online network, as the mean over members.
  // REQUIRES: count <= spec().batch.
  virtual void ActionValues(std::span<const std::byte> observations, int count,
                            std::span<float> q) = 0;

  // outputs [action, member, output]: all outputs of the online network for one observation, with
  // the meaning of LossSpec::head. For inspection; a learner that does not offer it throws
  // Error(kUsage).
  virtual void MemberOutputs(std::span<const std::byte> observation, std::span<float> outputs);

  // target = online.
  virtual void CopyTarget() = 0;

  // Views of the state. After writing through them call CommitState(), before anything else. May
  // copy much memory; updates() is cheap.
  virtual LearnerState State() = 0;
  virtual void CommitState(std::int64_t updates) = 0;
  virtual std::int64_t updates() { return State().updates; }
};

}  // namespace uper
