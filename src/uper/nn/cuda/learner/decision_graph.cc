#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "uper/base/check.h"
#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/observations/observation_kernels.h"
#include "uper/nn/cuda/runtime/mailbox.h"

// How the learner computes action values.

namespace uper::cuda {
namespace {

constexpr int kBackoffDecisions = 300;  // launched normally after a prelaunch that took too long

}  // namespace

void CudaLearner::ActionValues(std::span<const std::byte> observations, int count,
                               std::span<float> q) {
  UPER_CHECK(count >= 1 && count <= spec_.batch, "the batch does not fit");
  UPER_CHECK(observations.size() == count * observation_bytes() &&
                 q.size() == std::size_t{1} * count * spec_.network.actions,
             "observations and values must fit the count");
  CancelPrelaunched();
  Graph& graph = acting_graphs_[current_][count];
  if (!graph) {
    const std::byte* from =
        ReadsHostObservations(count) ? host_observations_.data() : acting_bytes_.data();
    graph = Graph(main_, [&] { EnqueueActing(current(), count, {.pixels = from}); });
  }
  StageObservations(observations, count);
  graph.Launch(main_);
  for (int b = 0; b < count; ++b) ++requested_[b];
  ReadActionValues(count, q);
}

// Kernels read few observations directly from the host's memory, which avoids the latency of a
// copy. Many observations are copied in pieces: the GPU receives one while the host copies the
// next.
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

// Waits until the GPU has published the values. Ignores a prelaunched decision that has no frame
// yet.
void CudaLearner::ReadActionValues(int count, std::span<float> q) {
  if (spec_.loss.head == HeadKind::kCategorical) {
    main_.Synchronize();
    std::copy_n(q_.data(), q.size(), q.begin());
    return;
  }
  const std::size_t actions = spec_.network.actions;
  for (std::size_t i = 0; i < count * actions; ++i) {
    const int due = requested_[i / actions] - (prelaunched_ && i < actions ? 1 : 0);
    const std::atomic_ref<std::uint64_t> place(mailbox_[i]);
    std::uint64_t entry = 0;
    SpinUntilPublished(
        [&] { return MailboxSequence(entry = place.load(std::memory_order_relaxed)) == due; },
        [&] { return main_.IsDone(); });
    if (i < q.size()) q[i] = MailboxValue(entry);
  }
}

void CudaLearner::BeginDecisions(ReplayGraphNodes& replay, FramePointers frames, int count) {
  if (prelaunched_ && count == 1 && FeedPrelaunched(frames)) return;
  PutFrames(frames, count);
  Launch(replay, {.decisions = count});
}

// REQUIRES: these decisions have not been launched yet.
void CudaLearner::PutFrames(FramePointers frames, int count) {
  UPER_CHECK(count <= spec_.batch, "the batch does not fit");
  CancelPrelaunched();
  const std::size_t each = frames.size() / count;
  if (frame_pointers_.frames() == 0) frame_pointers_ = FramePointerTable(spec_.batch, each);
  for (int b = 0; b < count; ++b) {
    frame_pointers_.Put(b, requested_[b] + 1, frames.subspan(b * each, each));
  }
}

void CudaLearner::EnqueueDecisions(ReplayGraphNodes& replay, int count) {
  const bool publishes = spec_.loss.head != HeadKind::kCategorical;
  const FramePointerView frames =
      frame_pointers_.ForKernels(publishes ? decision_counts_.data() : nullptr);
  if (acting_torso_.reads_frame_pointers()) {
    return EnqueueActing(current(), count, {.frames = frames});
  }
  replay.EnqueueObservations(frames.entries, count, acting_bytes_.data(), main_);
  EnqueueActing(current(), count, {.pixels = acting_bytes_.data()});
}

void CudaLearner::AwaitActionValues(int count, std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * count * spec_.network.actions,
             "values must fit the count");
  ReadActionValues(count, q);
  backoff_decisions_ = std::max(0, backoff_decisions_ - 1);
  // A long wait has one of two causes. Other programs use the GPU, and waiting kernels would slow
  // them down. Or decisions wait for updates and not for the host.
  constexpr std::chrono::microseconds kLong{200};
  if (std::exchange(fed_, false) && std::chrono::steady_clock::now() - fed_at_ > kLong) {
    backoff_decisions_ = kBackoffDecisions;
  }
}

bool CudaLearner::MayPrelaunch() const {
  return !prelaunched_ && backoff_decisions_ == 0 && !shares_gpu() &&
         acting_torso_.reads_frame_pointers() && spec_.loss.head != HeadKind::kCategorical;
}

void CudaLearner::PrelaunchDecision(ReplayGraphNodes& replay, bool appends) {
  Launch(replay, {.appends = appends, .decisions = 1});
  prelaunched_ = true;
}

// Gives the prelaunched decision its frames. Returns false if it may have timed out; then it has
// ended.
bool CudaLearner::FeedPrelaunched(FramePointers frames) {
  frame_pointers_.Put(0, requested_[0], frames);
  prelaunched_ = false;
  if (frame_pointers_.TimedOut()) {
    ReadActionValues(1, {});
    frame_pointers_.ClearTimeout();
    backoff_decisions_ = kBackoffDecisions;
    return false;
  }
  fed_ = true;
  fed_at_ = std::chrono::steady_clock::now();
  return true;
}

void CudaLearner::CancelPrelaunched() {
  if (!prelaunched_) return;
  prelaunched_ = false;
  const std::vector<const std::byte*> zeros(frame_pointers_.frames());
  frame_pointers_.Put(0, requested_[0], zeros);
  ReadActionValues(1, {});
  frame_pointers_.ClearTimeout();
}

// `pass` says where the observations are.
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

// Computes q_ from the hidden layer.
void CudaLearner::EnqueueActionValues(ParameterSet& set, int count) {
  if (spec_.loss.head != HeadKind::kCategorical) {
    LaunchForwardMean({.batch = count,
                       .members = 1,
                       .hidden = head_.hidden_total(),
                       .actions = head_.actions,
                       .units = acting_activations_.hidden(),
                       .unit_stride = head_.hidden_total(),
                       .weights = set.mean_weights.ensemble_weights.data(),
                       .bias = set.mean_weights.member_bias.data(),
                       .bias_members = head_.members,
                       .sequences = decision_counts_.data(),
                       .mailbox = mailbox_.data()},
                      main_, LaunchOrder::kOverlapPrevious);
    return;
  }
  const HeadForwardChosen all{.w = set.online.data() + head_w_,
                              .hidden = acting_activations_.hidden(),
                              .parts = all_parts_.data()};
  LaunchForwardChosen(head_, count, {&all, 1}, main_);
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

}  // namespace uper::cuda
