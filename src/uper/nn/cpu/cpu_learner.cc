#include "uper/nn/cpu/cpu_learner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "uper/base/check.h"
#include "uper/base/error.h"
#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/head_values.h"

namespace uper::cpu {
namespace {

LearnerSpec Validated(const LearnerSpec& spec) {
  spec.Validate();
  if (spec.precision != Precision::kFp32) {
    throw Error(ErrorKind::kUsage, "the CPU multiplies in fp32 only: set precision to \"fp32\"");
  }
  return spec;
}

int ArgMax(std::span<const float> values) {
  return static_cast<int>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

CpuLearner::CpuLearner(const LearnerSpec& spec, ThreadPool& pool)
    : spec_(Validated(spec)),
      pool_(pool),
      network_(spec.network, {.max_batch = spec.batch, .passes = kPasses}, pool),
      online_(network_.layout().size()),
      target_(online_.size()),
      first_moment_(online_.size()),
      second_moment_(online_.size()),
      online_mean_weights_(spec.network),
      target_mean_weights_(spec.network),
      gradient_(online_.size()),
      taken_actions_(spec.batch),
      scratch_(pool.threads(), LossScratch(Shape())),
      losses_(spec.batch),
      td_errors_(spec.batch),
      uncertainty_(spec.batch) {
  const std::size_t batch = spec.batch;
  const std::size_t outputs = spec.network.member_outputs();
  online_outputs_.resize(batch * outputs);
  target_outputs_.resize(batch * outputs);
  d_outputs_.resize(batch * outputs);
  member_values_.resize(batch * spec.network.members * spec.network.actions);
  target_actions_.resize(batch * spec.network.members);
  if (spec.loss.head == HeadKind::kCategorical) {
    all_outputs_.resize(batch * outputs * spec.network.actions);
  }
}

EnsembleShape CpuLearner::Shape() const {
  return {.members = static_cast<std::size_t>(spec_.network.members),
          .quantiles = static_cast<std::size_t>(spec_.network.outputs)};
}

LearnerOutput CpuLearner::Update(const LearnerBatch& batch) {
  CheckBatch(batch);
  std::copy(batch.a_tm1.begin(), batch.a_tm1.end(), taken_actions_.begin());
  if (profile_ != nullptr) profile_->Start();
  Forward(batch);
  ChooseTargetActions();
  EndPhase(UpdatePhase::kTargetActions);
  const CpuNetwork::HeadCall heads[] = {
      {kTarget, target_.span(), target_actions_, spec_.network.members, target_outputs_},
      {kOnline, online_.span(), taken_actions_, 1, online_outputs_}};
  network_.HeadOutputs(heads);
  EndPhase(UpdatePhase::kHead);
  ComputeSamples(batch);
  EndPhase(UpdatePhase::kSamples);
  const double gradient_squares =
      network_.Backward(kOnline, online_.span(), taken_actions_, d_outputs_, gradient_.span());

  const LearnerOutput output{.loss = std::accumulate(losses_.begin(), losses_.end(), 0.0),
                             .gradient_norm = std::sqrt(gradient_squares),
                             .td_error = td_errors_,
                             .uncertainty = uncertainty_};
  if (!std::isfinite(output.loss) || !std::isfinite(output.gradient_norm)) {
    throw Error(ErrorKind::kNumeric, "update " + std::to_string(updates_ + 1) +
                                         ": the loss or the gradient is not finite (loss " +
                                         std::to_string(output.loss) + ")");
  }
  UpdateParameters(output.gradient_norm);
  EndPhase(UpdatePhase::kOptimizer);
  return output;
}

void CpuLearner::SetProfile(UpdateProfile* profile) {
  profile_ = profile;
  network_.SetProfile(profile);
}

void CpuLearner::EndPhase(UpdatePhase phase) {
  if (profile_ != nullptr) profile_->Lap(phase);
}

void CpuLearner::CheckBatch(const LearnerBatch& batch) const {
  const std::size_t size = spec_.batch;
  UPER_CHECK(batch.a_tm1.size() == size && batch.r_t.size() == size &&
                 batch.discount_t.size() == size && batch.weights.size() == size &&
                 batch.masks.size() == size,
             "a batch has as many transitions as the learner was made for");
  for (const std::int32_t action : batch.a_tm1) {
    UPER_CHECK(action >= 0 && action < spec_.network.actions, "an action out of range");
  }
}

void CpuLearner::Forward(const LearnerBatch& batch) {
  const CpuNetwork::ForwardCall calls[] = {{kOnline, online_.span(), batch.s_tm1},
                                           {kTarget, target_.span(), batch.s_t},
                                           {kNext, online_.span(), batch.s_t}};
  network_.Forward(std::span(calls).first(spec_.loss.double_q ? 3 : 2), spec_.batch);
}

// Fills target_actions_.
void CpuLearner::ChooseTargetActions() {
  if (spec_.loss.double_q) {
    RefreshOnlineMeanWeights();
    MemberValues(kNext, online_.span(), online_mean_weights_);
  } else {
    MemberValues(kTarget, target_.span(), target_mean_weights_);
  }
  const int members = spec_.network.members;
  const std::size_t actions = spec_.network.actions;
  for (int b = 0; b < spec_.batch; ++b) {
    const std::span<float> values =
        std::span(member_values_).subspan(actions * members * b, actions * members);
    if (spec_.loss.target_rule == TargetRule::kEnsemble) {
      // All members take the action of the largest sum.
      for (int k = 1; k < members; ++k) {
        for (std::size_t a = 0; a < actions; ++a) values[a] += values[k * actions + a];
      }
      std::fill_n(&target_actions_[std::size_t{1} * b * members], members,
                  ArgMax(values.first(actions)));
    } else {
      for (int k = 0; k < members; ++k) {
        target_actions_[b * members + k] = ArgMax(values.subspan(k * actions, actions));
      }
    }
  }
}

void CpuLearner::MemberValues(Pass pass, std::span<const float> parameters,
                              const HeadMeanWeights& mean_weights) {
  if (spec_.loss.head == HeadKind::kCategorical) {
    CategoricalValues(pass, parameters, spec_.batch);
  } else {
    network_.HeadMemberMeans(pass, mean_weights, member_values_);
  }
}

void CpuLearner::CategoricalValues(Pass pass, std::span<const float> parameters, int count) {
  const std::size_t members = spec_.network.members;
  const std::size_t actions = spec_.network.actions;
  const std::size_t atoms = spec_.network.outputs;
  const auto all = std::span(all_outputs_).first(count * actions * members * atoms);
  network_.HeadAll(pass, parameters, all);
  pool_.ParallelTasks(count, [&](int b) {
    for (std::size_t a = 0; a < actions; ++a) {
      for (std::size_t k = 0; k < members; ++k) {
        const std::size_t block = (b * actions + a) * members + k;
        member_values_[(b * members + k) * actions + a] =
            static_cast<float>(MemberValue(spec_.loss, all.subspan(block * atoms, atoms)));
      }
    }
  });
}

double CpuLearner::SampleScale(const LearnerBatch& batch) const {
  if (spec_.loss.member_weighting == MemberWeighting::kSum) return 1.0 / spec_.batch;
  const std::uint64_t members = ~std::uint64_t{0} >> (64 - spec_.network.members);
  int terms = 0;
  for (const std::uint64_t mask : batch.masks) terms += std::popcount(mask & members);
  return 1.0 / std::max(1, terms);
}

void CpuLearner::ComputeSamples(const LearnerBatch& batch) {
  const std::size_t outputs = spec_.network.member_outputs();
  const double scale = SampleScale(batch);
  pool_.ParallelTasks(spec_.batch, [&](int b, int thread) {
    const auto of = [&](std::vector<float>& all) {
      return std::span(all).subspan(b * outputs, outputs);
    };
    const SampleOutputs sample = ComputeSampleLoss(spec_.loss, Shape(),
                                                   {.online = of(online_outputs_),
                                                    .target = of(target_outputs_),
                                                    .r_t = batch.r_t[b],
                                                    .discount_t = batch.discount_t[b],
                                                    .weight = batch.weights[b],
                                                    .mask = batch.masks[b],
                                                    .scale = scale},
                                                   scratch_[thread], of(d_outputs_));
    losses_[b] = sample.loss;
    td_errors_[b] = sample.td_error;
    uncertainty_[b] = sample.uncertainty;
  });
}

void CpuLearner::UpdateParameters(double gradient_norm) {
  const double scale =
      spec_.max_global_norm > 0 ? ClipScale(gradient_norm, spec_.max_global_norm) : 1;
  const OptimizerBuffers buffers{.parameters = online_.span(),
                                 .gradient = gradient_.span(),
                                 .m = first_moment_.span(),
                                 .v = second_moment_.span()};
  ++updates_;
  const auto* adam = std::get_if<AdamOptions>(&spec_.optimizer);
  const OptimizerUpdate update =
      adam ? OptimizerUpdate(*adam, updates_, scale)
           : OptimizerUpdate(std::get<RmsPropOptions>(spec_.optimizer), scale);
  network_.Update(kOnline, d_outputs_, update, buffers);
  online_mean_weights_fresh_ = false;
}

// Update() did not store the part of the head. It is computed again from the same factors.
std::span<const float> CpuLearner::gradient() {
  network_.HeadGradient(kOnline, taken_actions_, d_outputs_, gradient_.span());
  return gradient_.span();
}

void CpuLearner::ActionValues(std::span<const std::byte> observations, int count,
                              std::span<float> q) {
  const std::size_t members = spec_.network.members;
  const std::size_t actions = spec_.network.actions;
  network_.Forward(kNext, online_.span(), observations, count);
  if (spec_.loss.head != HeadKind::kCategorical) {
    RefreshOnlineMeanWeights();
    network_.HeadEnsembleMean(kNext, online_mean_weights_, q);
    return;
  }
  CategoricalValues(kNext, online_.span(), count);
  for (int b = 0; b < count; ++b) {
    for (std::size_t a = 0; a < actions; ++a) {
      float sum = 0;
      for (std::size_t k = 0; k < members; ++k) {
        sum += member_values_[(b * members + k) * actions + a];
      }
      q[b * actions + a] = sum / static_cast<float>(members);
    }
  }
}

void CpuLearner::MemberOutputs(std::span<const std::byte> observation, std::span<float> outputs) {
  network_.Forward(kNext, online_.span(), observation, 1);
  network_.HeadAll(kNext, online_.span(), outputs);
}

void CpuLearner::CopyTarget() {
  CopyParameters(online_.span(), target_.span(), pool_);
  network_.ComputeHeadMeanWeights(target_.span(), target_mean_weights_);
}

void CpuLearner::RefreshOnlineMeanWeights() {
  if (online_mean_weights_fresh_) return;
  network_.ComputeHeadMeanWeights(online_.span(), online_mean_weights_);
  online_mean_weights_fresh_ = true;
}

LearnerState CpuLearner::State() {
  return {.online = online_.span(),
          .target = target_.span(),
          .first_moment = first_moment_.span(),
          .second_moment = second_moment_.span(),
          .updates = updates_};
}

void CpuLearner::CommitState(std::int64_t updates) {
  updates_ = updates;
  online_mean_weights_fresh_ = false;
  network_.ComputeHeadMeanWeights(target_.span(), target_mean_weights_);
}

}  // namespace uper::cpu
