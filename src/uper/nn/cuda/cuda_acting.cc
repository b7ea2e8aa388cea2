#include <algorithm>
#include <atomic>
#include <cstring>

#include "uper/base/check.h"
#include "uper/nn/cuda/cuda_learner.h"
#include "uper/nn/cuda/observation_kernels.h"

// How the learner values actions.

namespace uper {

void CudaLearner::ActionValues(std::span<const std::byte> observations, int count,
                               std::span<float> q) {
  UPER_CHECK(!begun_, "an update is under way");
  UPER_CHECK(count >= 1 && count <= spec_.batch, "the batch does not fit");
  UPER_CHECK(observations.size() == count * observation_bytes() &&
                 q.size() == std::size_t{1} * count * spec_.network.actions,
             "observations and values must fit the count");
  Graph& graph = acting_graphs_[current_][count];
  if (!graph) {
    const std::byte* from =
        ReadsHostObservations(count) ? host_observations_.data() : acting_bytes_.data();
    graph = Graph(main_, [&] { EnqueueActing(current(), count, {.pixels = from}); });
  }
  StageObservations(observations, count);
  graph.Launch(main_);
  AwaitActionValues(count);
  std::copy_n(q_.data(), q.size(), q.begin());
}

// Few observations are read by the kernels where they are, without the latency of a copy; of many,
// one piece is on its way to the GPU while the host copies the next.
void CudaLearner::StageObservations(std::span<const std::byte> observations, int count) {
  constexpr std::size_t kPiece = std::size_t{128} << 10;
  for (std::size_t at = 0; at < observations.size(); at += kPiece) {
    const std::size_t size = std::min(kPiece, observations.size() - at);
    std::memcpy(host_observations_.data() + at, observations.data() + at, size);
    if (ReadsHostObservations(count)) continue;
    CheckCuda(cudaMemcpyAsync(acting_bytes_.data() + at, host_observations_.data() + at, size,
                              cudaMemcpyHostToDevice, main_),
              "copying observations to the GPU");
  }
}

// Looks on until the last kernel shows its results: sooner than the end of the graph is known.
void CudaLearner::AwaitActionValues(int count) {
  if (spec_.loss.head == HeadKind::kCategorical) return main_.Synchronize();
  constexpr int kLooks = 1 << 14;  // between questions whether it has ended, or gone wrong
  for (int b = 0; b < count; ++b) {
    const int before = seen_counts_[b];
    const std::atomic_ref<int> shown(shown_counts_[b]);
    for (int looks = 1; (seen_counts_[b] = shown.load(std::memory_order_acquire)) == before;
         ++looks) {
      if (looks % kLooks == 0 && main_.IsDone()) {  // then it is shown, now at the latest
        seen_counts_[b] = shown.load(std::memory_order_acquire);
        UPER_CHECK(seen_counts_[b] != before, "the GPU ended without showing its results");
        break;
      }
    }
  }
}

void CudaLearner::BeginActing(BatchSource& source, int count) {
  Launch(source, {.decisions = count});
}

void CudaLearner::EnqueueDecisions(BatchSource& source, int count) {
  if (acting_torso_.reads_planes() && source.ActingPlanes() != nullptr) {
    return EnqueueActing(current(), count, {.planes = source.ActingPlanes()});
  }
  source.EnqueueObservations(count, acting_bytes_.data(), main_);
  EnqueueActing(current(), count, {.pixels = acting_bytes_.data()});
}

void CudaLearner::FinishActing(int count, std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * count * spec_.network.actions,
             "values must fit the count");
  AwaitActionValues(count);
  std::copy_n(q_.data(), q.size(), q.begin());
}

// `pass`: where the observations are.
void CudaLearner::EnqueueActing(ParameterSet& set, int count, Torso::Pass pass) {
  if (!acting_torso_.reads_pixels()) {
    LaunchConvertObservations(spec_.network.input, static_cast<const std::byte*>(pass.pixels),
                              count, acting_observations_.data(), main_);
  }
  pass.parameters = set.online.data();
  pass.observations = acting_observations_.data();
  pass.activations = &acting_activations_;
  acting_torso_.Forward({&pass, 1}, count, main_);
  EnqueueActionValues(set, count);
}

// q_ from the hidden layer.
void CudaLearner::EnqueueActionValues(ParameterSet& set, int count) {
  if (spec_.loss.head != HeadKind::kCategorical) {
    LaunchMeans({.batch = count,
                 .members = 1,
                 .hidden = head_.hidden_total(),
                 .actions = head_.actions,
                 .units = acting_activations_.hidden(),
                 .unit_stride = head_.hidden_total(),
                 .weights = set.tables.mean_weights.data(),
                 .bias = set.tables.member_bias.data(),
                 .bias_members = head_.members,
                 .values = q_.data(),
                 .counts = acting_counts_.data(),
                 .shown_counts = shown_counts_.data()},
                main_, Follow::kOverlap);
    return;
  }
  const HeadSelection all{.w = set.online.data() + head_w_,
                          .hidden = acting_activations_.hidden(),
                          .parts = all_parts_.data()};
  LaunchSelect(head_, count, {&all, 1}, main_);
  LaunchAtomValues(head_,
                   {.batch = count,
                    .parts = all_parts_.data(),
                    .bias = set.online.data() + head_b_,
                    .low = spec_.loss.support.low,
                    .spacing = spec_.loss.support.spacing(),
                    .values = acting_values_.data()},
                   main_);
  LaunchMemberMean(head_, count, acting_values_.data(), q_.data(), main_);
}

}  // namespace uper
