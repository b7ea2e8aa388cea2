#include <array>
#include <vector>

#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/observations/observation_kernels.h"
#include "uper/nn/cuda/optimizer/dense_weight_update.h"

// The graph of an update.

namespace uper::cuda {

Torso::Pass CudaLearner::PassOf(PassIndex pass, ParameterSet& set) {
  const std::size_t s_t = observations_.size() / 2;
  return {.parameters = pass == kTarget ? target_.data() : set.online.data(),
          .observations = observations_.data() + (pass == kOnline ? 0 : s_t),
          .pixels = set.batch.data() + (pass == kOnline ? 0 : batch_layout_.observation_bytes),
          .activations = &activations_[pass]};
}

void CudaLearner::EnqueueUpdates(ReplayGraphNodes& replay, int count, bool shares_gpu) {
  for (int i = 0; i < count; ++i) {
    const int from = (current_ + i) % 2;
    EnqueueUpdate(
        sets_[from], sets_[1 - from],
        {.replay = &replay, .first = i == 0, .last = i + 1 == count, .shares_gpu = shares_gpu});
  }
}

void CudaLearner::EnqueueUpdate(ParameterSet& from, ParameterSet& to,
                                const ChainPosition& position) {
  EnqueueForward(from, position);
  speculative_fork_.Order(main_, speculative_stream_);
  LaunchBeginUpdate(rules_, update_state_.data(), speculative_stream_);
  CheckCuda(cudaEventRecord(begin_done_, speculative_stream_), "cudaEventRecord");
  EnqueueForwardChosen(from);
  const LossCall samples = LossCallOf(from);
  LaunchLoss(samples, main_, LaunchOrder::kOverlapPrevious);
  // Kernels that are enqueued first get room on the GPU first.
  const bool head_first = IsLongHeadUpdate(head_);
  if (!head_first) EnqueueStatistics(samples, to, position);
  speculative_fork_.Order(main_, speculative_stream_);
  EnqueueHeadUpdate(OptimizerPass::kSpeculative, from, to, speculative_stream_);
  EnqueueHeadNorm(from);
  if (head_first) EnqueueStatistics(samples, to, position);
  EnqueueBackward(from, to);
  EnqueueNormAndOptimizer(from, to);
  if (position.replay == nullptr) return;
  if (position.last)
    return position.replay->EnqueueEnd(update_state_.data(), main_, LaunchOrder::kOverlapPrevious);
  // The next update need not wait for the report, but its speculative update on that stream does.
  speculative_fork_.Order(main_, speculative_stream_);
  position.replay->EnqueueEnd(update_state_.data(), speculative_stream_, LaunchOrder::kSerial);
}

void CudaLearner::EnqueueForward(ParameterSet& from, const ChainPosition& position) {
  if (!torso_.reads_pixels()) {
    LaunchConvertObservations(spec_.network.input, from.batch.data(), 2 * spec_.batch,
                              observations_.data(), main_);
  } else if (!torso_.backward_reads_pixels()) {  // the backward pass needs s_tm1 as floats
    speculative_fork_.Order(main_, speculative_stream_);
    LaunchConvertObservations(spec_.network.input, from.batch.data(), spec_.batch,
                              observations_.data(), speculative_stream_);
  }
  std::vector<Torso::Pass> passes;
  for (int pass = 0; pass < static_cast<int>(activations_.size()); ++pass) {
    passes.push_back(PassOf(static_cast<PassIndex>(pass), from));
  }
  // A later update's batch was complete before the previous update ended.
  const LaunchOrder order = position.first ? LaunchOrder::kSerial : LaunchOrder::kOverlapPrevious;
  torso_.Forward(passes, spec_.batch, main_, order, position.shares_gpu);
}

HeadForwardMean CudaLearner::MeansOf(const float* hidden, CudaHeadMeanWeights& mean_weights,
                                     int batch) {
  return {.batch = batch,
          .members = head_.members,
          .hidden = head_.hidden,
          .actions = head_.actions,
          .units = hidden,
          .unit_stride = head_.hidden_total(),
          .member_step = head_.separate_hidden ? head_.hidden : 0,
          .weights = mean_weights.member_weights.data(),
          .bias = mean_weights.member_bias.data(),
          .values = member_values_.data()};
}

// Computes target_actions_ for s_t: from the means in member_values_, or from the outputs of all
// actions.
void CudaLearner::EnqueueTargetActions(ParameterSet& from) {
  const bool ensemble = spec_.loss.target_rule == TargetRule::kEnsemble;
  if (spec_.loss.head == HeadKind::kCategorical) {
    const PassIndex pass = ChoosingPass();
    const float* parameters = PassOf(pass, from).parameters;
    const HeadForwardChosen all{.w = parameters + head_w_,
                                .hidden = activations_[pass].hidden(),
                                .parts = all_parts_.data()};
    LaunchForwardChosen(head_, spec_.batch, {&all, 1}, main_);
    LaunchAtomValues(head_,
                     {.batch = spec_.batch,
                      .parts = all_parts_.data(),
                      .bias = parameters + head_b_,
                      .low = spec_.loss.support.low,
                      .spacing = spec_.loss.support.spacing(),
                      .values = member_values_.data()},
                     main_);
  } else if (!ensemble) {
    return;  // LaunchForwardMean() has chosen the actions
  }
  LaunchChoose(head_, spec_.batch, ensemble, member_values_.data(), target_actions_.data(), main_);
}

// Computes the target's actions, then the outputs of the taken actions and of the target's actions.
void CudaLearner::EnqueueForwardChosen(ParameterSet& from) {
  if (spec_.loss.head != HeadKind::kCategorical) {
    const PassIndex pass = ChoosingPass();
    HeadForwardMean means =
        MeansOf(activations_[pass].hidden(),
                pass == kNext ? from.mean_weights : target_mean_weights_, spec_.batch);
    if (spec_.loss.target_rule != TargetRule::kEnsemble) {
      means.chosen = target_actions_.data();
    }
    LaunchForwardMean(means, main_, LaunchOrder::kOverlapPrevious);
  }
  EnqueueTargetActions(from);
  const std::array selections{HeadForwardChosen{.w = from.online.data() + head_w_,
                                                .hidden = activations_[kOnline].hidden(),
                                                .actions = Staged<int>(from, batch_layout_.a_tm1),
                                                .sample_stride = 1,
                                                .actions_ready = true,
                                                .w_read_again = true,
                                                .parts = online_parts_.data()},
                              HeadForwardChosen{.w = target_.data() + head_w_,
                                                .hidden = activations_[kTarget].hidden(),
                                                .actions = target_actions_.data(),
                                                .sample_stride = head_.members,
                                                .member_stride = 1,
                                                .parts = target_parts_.data()}};
  LaunchForwardChosen(head_, spec_.batch, selections, main_, LaunchOrder::kOverlapPrevious);
}

LossCall CudaLearner::LossCallOf(ParameterSet& from) {
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

// The head's part of the norm, computed beside the backward pass.
void CudaLearner::EnqueueHeadNorm(ParameterSet& from) {
  fork_.Order(main_, norm_);
  const HeadGradient gradient = HeadGradientOf(from);
  double* squares = squares_.data() + torso_.SquareCount();  // after those of the torso
  LaunchHeadSquares(head_, gradient, squares, norm_);
  LaunchBackwardBias(head_, gradient, gradient_.data() + head_b_, squares + HeadSquareCount(head_),
                     norm_);
  CheckCuda(cudaEventRecord(squares_done_, norm_), "cudaEventRecord");
}

// Computes the statistics, passes them to the replay memory, and draws the next batch. Without a
// replay memory the kernel writes straight to the host's memory, because a copy would run after
// everything else.
void CudaLearner::EnqueueStatistics(const LossCall& samples, ParameterSet& to,
                                    const ChainPosition& position) {
  ReplayGraphNodes* replay = position.replay;
  const bool for_host = replay == nullptr;
  statistics_fork_.Order(main_, statistics_stream_);
  LaunchStatistics({.samples = samples,
                    .quantiles = quantiles_.data(),
                    .td_error = for_host ? host_td_errors_.data() : td_errors_.data(),
                    .uncertainty = for_host ? host_uncertainty_.data() : uncertainty_.data()},
                   statistics_stream_);
  if (replay != nullptr) {
    replay->RecordStatistics({.weights = samples.weights,
                              .td_error = td_errors_.data(),
                              .uncertainty = uncertainty_.data()},
                             statistics_stream_);
    if (!position.last)
      replay->EnqueueBatch(BatchOf(to), /*on_critical_path=*/false, statistics_stream_);
  }
  CheckCuda(cudaEventRecord(statistics_done_, statistics_stream_), "cudaEventRecord");
}

void CudaLearner::EnqueueBackward(ParameterSet& from, ParameterSet& to) {
  const HeadGradient gradient = HeadGradientOf(from);
  LaunchBackwardHidden(head_, gradient, from.online.data() + head_w_, hidden_parts_.data(), main_,
                       LaunchOrder::kOverlapPrevious);
  LaunchSumHidden(head_, gradient, hidden_parts_.data(), torso_.d_hidden(), main_,
                  LaunchOrder::kOverlapPrevious);
  const auto step_hidden = [&](const float* inputs) {
    dense_fork_.Order(main_, dense_);
    CheckCuda(cudaStreamWaitEvent(dense_, begin_done_), "cudaStreamWaitEvent");
    const int count = DenseWeightUpdateBlocks(torso_.hidden_inputs(), head_.hidden_total());
    LaunchDenseWeightUpdate({.rules = rules_,
                             .batch = spec_.batch,
                             .inputs = torso_.hidden_inputs(),
                             .units = head_.hidden_total(),
                             .x = inputs,
                             .d_output = torso_.d_hidden(),
                             .gradient = gradient_.data() + hidden_w_,
                             .parameters = {from.block(hidden_w_), to.block(hidden_w_)},
                             .state = update_state_.data(),
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

void CudaLearner::EnqueueHeadUpdate(OptimizerPass pass, ParameterSet& from, ParameterSet& to,
                                    cudaStream_t stream, LaunchOrder order) {
  LaunchHeadOptimizer(rules_, pass, head_, HeadGradientOf(from),
                      {from.block(head_w_), to.block(head_w_)}, update_state_.data(),
                      to.mean_weights.pointers(), stream, order);
}

// All earlier work has ended, so the last kernels may overlap.
void CudaLearner::EnqueueNormAndOptimizer(ParameterSet& from, ParameterSet& to) {
  speculative_done_.Order(speculative_stream_, main_);
  CheckCuda(cudaStreamWaitEvent(main_, statistics_done_), "cudaStreamWaitEvent");
  LaunchFinishUpdate({.rules = rules_,
                      .squares = squares_.data(),
                      .square_count = static_cast<int>(squares_.size()),
                      .members = members_.data(),
                      .member_count = static_cast<int>(members_.size()),
                      .state = update_state_.data(),
                      .report = host_update_state_.data(),
                      .gradient = gradient_.data(),
                      .parameters = {from.block(0), to.block(0)},
                      .remaining = {0, hidden_w_},
                      .speculative = {hidden_w_, head_w_},
                      .shape = head_,
                      .bias = head_b_,
                      .mean_weights = to.mean_weights.pointers()},
                     main_);
  EnqueueHeadUpdate(OptimizerPass::kRedo, from, to, main_, LaunchOrder::kOverlapPrevious);
}

}  // namespace uper::cuda
