#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "uper/base/check.h"
#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/observations/observation_kernels.h"
#include "uper/nn/cuda/runtime/mailbox.h"

// How the learner values actions.

namespace uper {
namespace {

constexpr int kUnprepared = 300;  // decisions, after one that it did not pay for

}  // namespace

void CudaLearner::ActionValues(std::span<const std::byte> observations, int count,
                               std::span<float> q) {
  UPER_CHECK(count >= 1 && count <= spec_.batch, "the batch does not fit");
  UPER_CHECK(observations.size() == count * observation_bytes() &&
                 q.size() == std::size_t{1} * count * spec_.network.actions,
             "observations and values must fit the count");
  CancelPrepared();
  Graph& graph = acting_graphs_[current_][count];
  if (!graph) {
    const std::byte* from =
        ReadsHostObservations(count) ? host_observations_.data() : acting_bytes_.data();
    graph = Graph(main_, [&] { EnqueueActing(current(), count, {.pixels = from}); });
  }
  StageObservations(observations, count);
  graph.Launch(main_);
  for (int b = 0; b < count; ++b) ++asked_counts_[b];
  TakeActionValues(count, q);
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

// When the last kernel has shown them; but for those of a decision that is only prepared.
void CudaLearner::TakeActionValues(int count, std::span<float> q) {
  if (spec_.loss.head == HeadKind::kCategorical) {
    main_.Synchronize();
    std::copy_n(q_.data(), q.size(), q.begin());
    return;
  }
  const std::size_t actions = spec_.network.actions;
  for (std::size_t i = 0; i < count * actions; ++i) {
    const int due = asked_counts_[i / actions] - (prepared_ && i < actions ? 1 : 0);
    const std::atomic_ref<std::uint64_t> place(shown_values_[i]);
    std::uint64_t shown = 0;
    AwaitShown([&] { return ShownCount(shown = place.load(std::memory_order_relaxed)) == due; },
               [&] { return main_.IsDone(); });
    if (i < q.size()) q[i] = ShownValue(shown);
  }
}

void CudaLearner::BeginDecisions(BatchSource& source, Planes planes, int count) {
  if (prepared_ && count == 1 && GivePrepared(planes)) return;
  PutPlanes(planes, count);
  Launch(source, {.decisions = count});
}

// For decisions that are not under way yet.
void CudaLearner::PutPlanes(Planes planes, int count) {
  UPER_CHECK(count <= spec_.batch, "the batch does not fit");
  CancelPrepared();
  const std::size_t each = planes.size() / count;
  if (planes_.planes() == 0) planes_ = PlaneTable(spec_.batch, each);
  for (int b = 0; b < count; ++b) {
    planes_.Put(b, asked_counts_[b] + 1, planes.subspan(b * each, each));
  }
}

void CudaLearner::EnqueueDecisions(BatchSource& source, int count) {
  const bool shows_counts = spec_.loss.head != HeadKind::kCategorical;
  const PlanesToRead planes = planes_.ForKernels(shows_counts ? acting_counts_.data() : nullptr);
  if (acting_torso_.reads_planes()) {
    return EnqueueActing(current(), count, {.planes = planes});
  }
  source.EnqueueObservations(planes.entries, count, acting_bytes_.data(), main_);
  EnqueueActing(current(), count, {.pixels = acting_bytes_.data()});
}

void CudaLearner::AwaitActionValues(int count, std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * count * spec_.network.actions,
             "values must fit the count");
  TakeActionValues(count, q);
  unprepared_ = std::max(0, unprepared_ - 1);
  // Whoever waits so long shares the GPU with other programs, whose time waiting kernels take, or
  // waits for updates, and not for the host.
  constexpr std::chrono::microseconds kLong{200};
  if (std::exchange(given_, false) && std::chrono::steady_clock::now() - given_at_ > kLong) {
    unprepared_ = kUnprepared;
  }
}

bool CudaLearner::MayPrepareActing() const {
  return !prepared_ && unprepared_ == 0 && !crowded() && acting_torso_.reads_planes() &&
         spec_.loss.head != HeadKind::kCategorical;
}

void CudaLearner::PrelaunchDecision(BatchSource& source, bool grows) {
  Launch(source, {.grows = grows, .decisions = 1});
  prepared_ = true;
}

// Lets the prepared decision go on. False if it may have waited no longer: then it is over.
bool CudaLearner::GivePrepared(Planes planes) {
  planes_.Put(0, asked_counts_[0], planes);
  prepared_ = false;
  if (planes_.MayBeLate()) {
    TakeActionValues(1, {});
    planes_.ForgetLate();
    unprepared_ = kUnprepared;
    return false;
  }
  given_ = true;
  given_at_ = std::chrono::steady_clock::now();
  return true;
}

void CudaLearner::CancelPrepared() {
  if (!prepared_) return;
  prepared_ = false;
  const std::vector<const std::byte*> zeros(planes_.planes());
  planes_.Put(0, asked_counts_[0], zeros);
  TakeActionValues(1, {});
  planes_.ForgetLate();
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
                 .counts = acting_counts_.data(),
                 .shown = shown_values_.data()},
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
