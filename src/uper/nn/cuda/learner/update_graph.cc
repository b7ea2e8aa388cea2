#include <array>
#include <vector>

#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/observations/observation_kernels.h"
#include "uper/nn/cuda/optimizer/dense_weight_update.h"

// What the graph of an update consists of.

namespace uper {

Torso::Pass CudaLearner::PassOf(Slot slot, ParameterSet& set) {
  const std::size_t s_t = observations_.size() / 2;
  return {.parameters = slot == kTarget ? target_.data() : set.online.data(),
          .observations = observations_.data() + (slot == kOnline ? 0 : s_t),
          .pixels = set.batch.data() + (slot == kOnline ? 0 : batch_layout_.observation_bytes),
          .activations = &activations_[slot]};
}

void CudaLearner::EnqueueUpdates(BatchSource& source, int count, bool crowded) {
  for (int i = 0; i < count; ++i) {
    const int from = (current_ + i) % 2;
    EnqueueUpdate(sets_[from], sets_[1 - from],
                  {.source = &source, .first = i == 0, .last = i + 1 == count, .crowded = crowded});
  }
}

void CudaLearner::EnqueueUpdate(ParameterSet& from, ParameterSet& to, const InRow& row) {
  EnqueueForward(from, row);
  ahead_fork_.Order(main_, ahead_);
  LaunchBeginStep(rules_, step_.data(), ahead_);
  CheckCuda(cudaEventRecord(begin_done_, ahead_), "cudaEventRecord");
  EnqueueSelections(from);
  const SampleCall samples = Samples(from);
  LaunchSamples(samples, main_, Follow::kOverlap);
  // What is enqueued first finds room first.
  const bool head_first = IsLongHeadStep(head_);
  if (!head_first) EnqueueFindings(samples, to, row);
  ahead_fork_.Order(main_, ahead_);
  EnqueueHeadStep(StepKind::kAhead, from, to, ahead_);
  EnqueueHeadNorm(from);
  if (head_first) EnqueueFindings(samples, to, row);
  EnqueueBackward(from, to);
  EnqueueNormAndOptimizer(from, to);
  if (row.source == nullptr) return;
  if (row.last) return row.source->EnqueueEnd(step_.data(), main_, Follow::kOverlap);
  // The next update need not wait for it; what it does on that stream does.
  ahead_fork_.Order(main_, ahead_);
  row.source->EnqueueEnd(step_.data(), ahead_, Follow::kAfter);
}

void CudaLearner::EnqueueForward(ParameterSet& from, const InRow& row) {
  if (!torso_.reads_pixels()) {
    LaunchConvertObservations(spec_.network.input, from.batch.data(), 2 * spec_.batch,
                              observations_.data(), main_);
  } else if (!torso_.backward_reads_pixels()) {  // which needs s_tm1
    ahead_fork_.Order(main_, ahead_);
    LaunchConvertObservations(spec_.network.input, from.batch.data(), spec_.batch,
                              observations_.data(), ahead_);
  }
  std::vector<Torso::Pass> passes;
  for (int slot = 0; slot < static_cast<int>(activations_.size()); ++slot) {
    passes.push_back(PassOf(static_cast<Slot>(slot), from));
  }
  // The batch of a later one was there before the end of the one before.
  const Follow follow = row.first ? Follow::kAfter : Follow::kOverlap;
  torso_.Forward(passes, spec_.batch, main_, follow, row.crowded);
}

HeadMeans CudaLearner::MeansOf(const float* hidden, CudaHeadTables& tables, int batch) {
  return {.batch = batch,
          .members = head_.members,
          .hidden = head_.hidden,
          .actions = head_.actions,
          .units = hidden,
          .unit_stride = head_.hidden_total(),
          .member_step = head_.separate_hidden ? head_.hidden : 0,
          .weights = tables.member_weights.data(),
          .bias = tables.member_bias.data(),
          .values = member_values_.data()};
}

// target_actions_ of s_t: from the means that are in member_values_, or from the outputs of all
// actions.
void CudaLearner::EnqueueTargetActions(ParameterSet& from) {
  const bool ensemble = spec_.loss.target_action == TargetAction::kEnsemble;
  if (spec_.loss.head == HeadKind::kCategorical) {
    const Slot slot = ChoosingSlot();
    const float* parameters = PassOf(slot, from).parameters;
    const HeadSelection all{.w = parameters + head_w_,
                            .hidden = activations_[slot].hidden(),
                            .parts = all_parts_.data()};
    LaunchSelect(head_, spec_.batch, {&all, 1}, main_);
    LaunchAtomValues(head_,
                     {.batch = spec_.batch,
                      .parts = all_parts_.data(),
                      .bias = parameters + head_b_,
                      .low = spec_.loss.support.low,
                      .spacing = spec_.loss.support.spacing(),
                      .values = member_values_.data()},
                     main_);
  } else if (!ensemble) {
    return;  // the means' kernel has chosen
  }
  LaunchChoose(head_, spec_.batch, ensemble, member_values_.data(), target_actions_.data(), main_);
}

// The target's actions, then the outputs of the taken actions and of those.
void CudaLearner::EnqueueSelections(ParameterSet& from) {
  if (spec_.loss.head != HeadKind::kCategorical) {
    const Slot slot = ChoosingSlot();
    HeadMeans means = MeansOf(activations_[slot].hidden(),
                              slot == kNext ? from.tables : target_tables_, spec_.batch);
    if (spec_.loss.target_action != TargetAction::kEnsemble) {
      means.chosen = target_actions_.data();
    }
    LaunchMeans(means, main_, Follow::kOverlap);
  }
  EnqueueTargetActions(from);
  const std::array selections{HeadSelection{.w = from.online.data() + head_w_,
                                            .hidden = activations_[kOnline].hidden(),
                                            .actions = Staged<int>(from, batch_layout_.a_tm1),
                                            .sample_stride = 1,
                                            .actions_ready = true,
                                            .w_read_again = true,
                                            .parts = online_parts_.data()},
                              HeadSelection{.w = target_.data() + head_w_,
                                            .hidden = activations_[kTarget].hidden(),
                                            .actions = target_actions_.data(),
                                            .sample_stride = head_.members,
                                            .member_stride = 1,
                                            .parts = target_parts_.data()}};
  LaunchSelect(head_, spec_.batch, selections, main_, Follow::kOverlap);
}

SampleCall CudaLearner::Samples(ParameterSet& from) {
  return {.loss = spec_.loss,
          .shape = head_,
          .batch = spec_.batch,
          .online_parts = online_parts_.data(),
          .target_parts = target_parts_.data(),
          .online_bias = from.online.data() + head_b_,
          .target_bias = target_.data() + head_b_,
          .actions = Staged<int>(from, batch_layout_.a_tm1),
          .target_actions = target_actions_.data(),
          .r_t = Staged<float>(from, batch_layout_.r_t),
          .discount_t = Staged<float>(from, batch_layout_.discount_t),
          .weights = Staged<float>(from, batch_layout_.weights),
          .masks = Staged<std::uint64_t>(from, batch_layout_.masks),
          .online = online_outputs_.data(),
          .target = target_outputs_.data(),
          .d_out = d_outputs_.data(),
          .members = members_.data()};
}

HeadGradient CudaLearner::HeadGradientOf(const ParameterSet& from) const {
  return {.batch = spec_.batch,
          .actions = Staged<int>(from, batch_layout_.a_tm1),
          .masks = Staged<std::uint64_t>(from, batch_layout_.masks),
          .hidden = activations_[kOnline].hidden(),
          .d_out = d_outputs_.data()};
}

// The head's part of the norm, beside the backward pass.
void CudaLearner::EnqueueHeadNorm(ParameterSet& from) {
  fork_.Order(main_, norm_);
  const HeadGradient gradient = HeadGradientOf(from);
  double* squares = squares_.data() + torso_.SquareCount();  // behind those of the torso
  LaunchHeadSquares(head_, gradient, squares, norm_);
  LaunchBackwardBias(head_, gradient, gradient_.data() + head_b_, squares + HeadSquareCount(head_),
                     norm_);
  CheckCuda(cudaEventRecord(squares_done_, norm_), "cudaEventRecord");
}

// What the update finds out about its samples, what the source makes of it, and the batch that it
// draws next. For the host it goes straight to its memory: copies would come after everything else.
void CudaLearner::EnqueueFindings(const SampleCall& samples, ParameterSet& to, const InRow& row) {
  BatchSource* source = row.source;
  const bool for_host = source == nullptr;
  findings_fork_.Order(main_, findings_);
  LaunchStatistics({.samples = samples,
                    .quantiles = quantiles_.data(),
                    .td_error = for_host ? host_td_errors_.data() : td_errors_.data(),
                    .uncertainty = for_host ? host_uncertainty_.data() : uncertainty_.data()},
                   findings_);
  if (source != nullptr) {
    source->EnqueueFindings({.weights = samples.weights,
                             .td_error = td_errors_.data(),
                             .uncertainty = uncertainty_.data()},
                            findings_);
    if (!row.last) source->EnqueueBatch(BatchOf(to), /*urgent=*/false, findings_);
  }
  CheckCuda(cudaEventRecord(findings_done_, findings_), "cudaEventRecord");
}

void CudaLearner::EnqueueBackward(ParameterSet& from, ParameterSet& to) {
  const HeadGradient gradient = HeadGradientOf(from);
  LaunchBackwardHidden(head_, gradient, from.online.data() + head_w_, hidden_parts_.data(), main_,
                       Follow::kOverlap);
  LaunchSumHidden(head_, gradient, hidden_parts_.data(), torso_.d_hidden(), main_,
                  Follow::kOverlap);
  const auto step_hidden = [&](const float* inputs) {
    dense_fork_.Order(main_, dense_);
    CheckCuda(cudaStreamWaitEvent(dense_, begin_done_), "cudaStreamWaitEvent");
    const int count = DenseStepBlocks(torso_.hidden_inputs(), head_.hidden_total());
    LaunchDenseStep({.rules = rules_,
                     .batch = spec_.batch,
                     .inputs = torso_.hidden_inputs(),
                     .units = head_.hidden_total(),
                     .x = inputs,
                     .d_output = torso_.d_hidden(),
                     .gradient = gradient_.data() + hidden_w_,
                     .parameters = {from.block(hidden_w_), to.block(hidden_w_)},
                     .state = step_.data(),
                     .squares = squares_.data() + squares_.size() - count},
                    dense_);
  };
  torso_.Backward(PassOf(kOnline, from), gradient_.data(), squares_.data(),
                  {.main = main_,
                   .side = side_,
                   .fork = fork_,
                   .join = join_,
                   .observations_ready = begin_done_,
                   .hidden_weights = step_hidden});
  dense_done_.Order(dense_, main_);
  CheckCuda(cudaStreamWaitEvent(main_, squares_done_), "cudaStreamWaitEvent");
}

void CudaLearner::EnqueueHeadStep(StepKind kind, ParameterSet& from, ParameterSet& to,
                                  cudaStream_t stream, Follow follow) {
  LaunchHeadOptimizer(rules_, kind, head_, HeadGradientOf(from),
                      {from.block(head_w_), to.block(head_w_)}, step_.data(), to.tables.pointers(),
                      stream, follow);
}

// Everything else has been done before: the kernels of the end may overlap.
void CudaLearner::EnqueueNormAndOptimizer(ParameterSet& from, ParameterSet& to) {
  ahead_done_.Order(ahead_, main_);
  CheckCuda(cudaStreamWaitEvent(main_, findings_done_), "cudaStreamWaitEvent");
  LaunchFinishStep({.rules = rules_,
                    .squares = squares_.data(),
                    .square_count = static_cast<int>(squares_.size()),
                    .members = members_.data(),
                    .member_count = static_cast<int>(members_.size()),
                    .state = step_.data(),
                    .report = host_step_.data(),
                    .gradient = gradient_.data(),
                    .parameters = {from.block(0), to.block(0)},
                    .plain = {0, hidden_w_},
                    .ahead = {hidden_w_, head_w_},
                    .shape = head_,
                    .bias = head_b_,
                    .tables = to.tables.pointers()},
                   main_);
  EnqueueHeadStep(StepKind::kAgain, from, to, main_, Follow::kOverlap);
}

}  // namespace uper
