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

// Everything that decides one update: an agent, as far as learning goes, is these numbers.
struct LearnerSpec {
  NetworkSpec network;
  LossSpec loss;
  std::variant<AdamOptions, RmsPropOptions> optimizer;
  double max_global_norm = 0;  // gradients are scaled down to it; 0: never
  int batch = 32;
  Precision precision = Precision::kFp32;  // on a GPU

  // Throws Error(kUsage) that names the field.
  void Validate() const;
};

// Transitions to learn from, in the caller's memory. REQUIRES: `batch` entries each, observations
// [batch, observation] as the network's input says.
struct LearnerBatch {
  std::span<const std::byte> s_tm1;
  std::span<const std::byte> s_t;
  std::span<const std::int32_t> a_tm1;
  std::span<const float> r_t;
  std::span<const float> discount_t;
  std::span<const float> weights;        // importance weights
  std::span<const std::uint64_t> masks;  // bit k: member k learns from the sample
};

// What an update found out, from the parameters before it. The spans are the learner's and hold
// until its next call.
struct LearnerOutput {
  double loss = 0;
  double gradient_norm = 0;                  // before clipping
  std::span<const double> td_error;          // [batch], as LossSpec::td_priority says
  std::span<const Uncertainty> uncertainty;  // [batch]
};

// All numbers a learner carries from one update to the next; buffers as layout() says.
struct LearnerState {
  std::span<float> online;
  std::span<float> target;
  std::span<float> first_moment;   // m of the optimiser
  std::span<float> second_moment;  // v of the optimiser
  std::int64_t updates = 0;
};

// Learns from batches and values actions. A pure function of its state and its inputs: it draws no
// random numbers and writes no priorities. Not thread-safe.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual const LearnerSpec& spec() const = 0;
  virtual const ParameterLayout& layout() const = 0;

  // One step of the optimiser. Throws Error(kNumeric), with nothing changed, when the loss or the
  // gradient is not finite.
  virtual LearnerOutput Update(const LearnerBatch& batch) = 0;
  // The gradient of the last Update, before clipping; holds until the next call. A learner need not
  // keep it and may compute it again here. REQUIRES: an Update.
  virtual std::span<const float> gradient() = 0;

  // q [count, action]: the mean over members of each action's value, by the online network.
  // REQUIRES: count <= spec().batch.
  virtual void ActionValues(std::span<const std::byte> observations, int count,
                            std::span<float> q) = 0;

  // outputs [action, member, output]: all that the online network puts out for one observation, as
  // LossSpec::head reads it. For people who want to look; a learner need not offer it, and then
  // throws Error(kUsage).
  virtual void MemberOutputs(std::span<const std::byte> observation, std::span<float> outputs);

  // target = online.
  virtual void CopyTarget() = 0;

  // Views of the state; CommitState() must be called after writing through them, before anything
  // else. May copy much memory: updates() alone is cheap.
  virtual LearnerState State() = 0;
  virtual void CommitState(std::int64_t updates) = 0;
  virtual std::int64_t updates() { return State().updates; }
};

}  // namespace uper
