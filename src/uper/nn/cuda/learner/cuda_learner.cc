#include "uper/nn/cuda/learner/cuda_learner.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "uper/base/check.h"
#include "uper/nn/cuda/optimizer/dense_weight_update.h"

namespace uper::cuda {
namespace {

LearnerSpec Validated(const LearnerSpec& spec) {
  spec.Validate();
  return spec;
}

std::size_t ObservationBytes(const NetworkSpec& spec) {
  const std::size_t entry = spec.input.type == InputType::kUint8 ? 1 : sizeof(float);
  return spec.observation_size() * entry;
}

std::size_t Aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

template <typename T>
void CopyInto(std::span<const T> from, std::byte* to) {
  std::memcpy(to, from.data(), from.size_bytes());
}

template <typename T>
void CopyOnGpu(const DeviceBuffer<T>& from, DeviceBuffer<T>& to, cudaStream_t stream) {
  CheckCuda(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream),
            "copying on the GPU");
}

// Passes through the torso per update.
int PassesOf(const LearnerSpec& spec) { return spec.loss.double_q ? 3 : 2; }

}  // namespace

CudaHeadMeanWeights::CudaHeadMeanWeights(const NetworkSpec& spec)
    : member_weights(std::size_t{1} * spec.members * spec.hidden_units * spec.actions),
      member_bias(std::size_t{1} * spec.members * spec.actions),
      ensemble_weights(std::size_t{1} * spec.hidden_total() * spec.actions),
      members_done(std::size_t{1} * spec.actions * HeadUpdateGroups(HeadShapeOf(spec))) {}

HeadMeanWeightPointers CudaHeadMeanWeights::pointers() {
  return {.member_weights = member_weights.data(),
          .member_bias = member_bias.data(),
          .ensemble_weights = ensemble_weights.data(),
          .members_done = members_done.data()};
}

ParameterSet::ParameterSet(const NetworkSpec& spec, std::size_t size, std::size_t batch_bytes)
    : online(size),
      first_moment(size),
      second_moment(size),
      mean_weights(spec),
      batch(batch_bytes) {}

ParameterBlock ParameterSet::block(std::size_t offset) {
  return {.p = online.data() + offset,
          .m = first_moment.data() + offset,
          .v = second_moment.data() + offset};
}

BatchLayout::BatchLayout(const LearnerSpec& spec)
    : observation_bytes(spec.batch * ObservationBytes(spec.network)),
      masks(Aligned(2 * observation_bytes)),
      a_tm1(masks + Aligned(spec.batch * sizeof(std::uint64_t))),
      r_t(a_tm1 + Aligned(spec.batch * sizeof(std::int32_t))),
      discount_t(r_t + Aligned(spec.batch * sizeof(float))),
      weights(discount_t + Aligned(spec.batch * sizeof(float))),
      size(weights + Aligned(spec.batch * sizeof(float))) {}

CudaLearner::CudaLearner(const LearnerSpec& spec)
    : spec_(Validated(spec)),
      layout_(spec.network),
      head_(HeadShapeOf(spec.network)),
      rules_(RulesOf(spec.optimizer, spec.max_global_norm)),
      hidden_w_(layout_.Find("hidden/w").offset),
      head_w_(layout_.Find("head/w").offset),
      head_b_(layout_.Find("head/b").offset),
      batch_layout_(spec),
      torso_(spec.network, layout_,
             {.max_batch = spec.batch,
              .tuned_batch = spec.batch,
              .max_passes = PassesOf(spec),
              .backward = true,
              .precision = spec.precision}),
      acting_torso_(spec.network, layout_,
                    {.max_batch = spec.batch,
                     .tuned_batch = 1,
                     .max_passes = 1,
                     .backward = false,
                     .precision = spec.precision}),
      sets_{ParameterSet(spec.network, layout_.size(), batch_layout_.size),
            ParameterSet(spec.network, layout_.size(), batch_layout_.size)},
      target_(layout_.size()),
      target_mean_weights_(spec.network),
      update_state_(1),
      host_batch_(batch_layout_.size),
      gradient_(layout_.size()),
      host_update_state_(1),
      td_errors_(spec.batch),
      uncertainty_(spec.batch),
      host_td_errors_(spec.batch),
      host_uncertainty_(spec.batch),
      acting_activations_(acting_torso_.MakeActivations()) {
  const std::size_t batch = spec.batch;
  const std::size_t members = spec.network.members;
  const std::size_t actions = spec.network.actions;
  const std::size_t outputs = batch * spec.network.member_outputs();
  if (!torso_.backward_reads_pixels()) {
    observations_ = DeviceBuffer<float>(2 * batch * spec.network.observation_size());
  }
  for (int i = 0; i < PassesOf(spec); ++i) activations_.push_back(torso_.MakeActivations());
  member_values_ = DeviceBuffer<float>(batch * members * actions);
  target_actions_ = DeviceBuffer<int>(batch * members);
  online_parts_ = DeviceBuffer<float>(kHeadParts * outputs);
  target_parts_ = DeviceBuffer<float>(kHeadParts * outputs);
  online_outputs_ = DeviceBuffer<float>(outputs);
  target_outputs_ = DeviceBuffer<float>(outputs);
  d_outputs_ = DeviceBuffer<float>(outputs);
  members_ = DeviceBuffer<MemberLoss>(batch * members);
  hidden_parts_ = DeviceBuffer<float>(members * batch * spec.network.hidden_units);
  squares_ =
      DeviceBuffer<double>(torso_.SquareCount() + HeadSquareCount(head_) + BiasBlocks(head_) +
                           DenseWeightUpdateBlocks(torso_.hidden_inputs(), head_.hidden_total()));
  if (spec.loss.head == HeadKind::kCategorical) {
    all_parts_ = DeviceBuffer<float>(kHeadParts * outputs * actions);
    quantiles_ = DeviceBuffer<float>(2 * outputs);
    acting_values_ = DeviceBuffer<float>(batch * members * actions);
  }
  host_observations_ = PinnedBuffer<std::byte>(batch * ObservationBytes(spec.network));
  acting_bytes_ = DeviceBuffer<std::byte>(host_observations_.size());
  acting_observations_ = DeviceBuffer<float>(batch * spec.network.observation_size());
  q_ = PinnedBuffer<float>(batch * actions);
  mailbox_ = PinnedBuffer<std::uint64_t>(batch * actions);
  decision_counts_ = DeviceBuffer<int>(batch);
  requested_.resize(batch);
  SynchronizeGpu("preparing the GPU");  // so that all streams see the zeros
  for (int i = 0; i < 2; ++i) {
    update_graphs_[i] = Graph(main_, [&] { EnqueueUpdate(sets_[i], sets_[1 - i], {}); });
    acting_graphs_[i].resize(batch + 1);
  }
  ++learners_;
}

// Kernels in flight may still read the buffers that are freed next. An error comes too late to
// matter.
CudaLearner::~CudaLearner() {
  --learners_;
  AwaitEnd();
}

void CudaLearner::CheckBatch(const LearnerBatch& batch) const {
  const std::size_t size = spec_.batch;
  UPER_CHECK(batch.a_tm1.size() == size && batch.r_t.size() == size &&
                 batch.discount_t.size() == size && batch.weights.size() == size &&
                 batch.masks.size() == size,
             "a batch must have LearnerSpec::batch transitions");
  UPER_CHECK(batch.s_tm1.size() == batch_layout_.observation_bytes &&
                 batch.s_t.size() == batch_layout_.observation_bytes,
             "observations must fit the batch and the network's input");
  for (const std::int32_t action : batch.a_tm1) {
    UPER_CHECK(action >= 0 && action < spec_.network.actions, "an action out of range");
  }
}

void CudaLearner::Stage(const LearnerBatch& batch) {
  std::byte* to = host_batch_.data();
  CopyInto(batch.s_tm1, to);
  CopyInto(batch.s_t, to + batch_layout_.observation_bytes);
  CopyInto(batch.masks, to + batch_layout_.masks);
  CopyInto(batch.a_tm1, to + batch_layout_.a_tm1);
  CopyInto(batch.r_t, to + batch_layout_.r_t);
  CopyInto(batch.discount_t, to + batch_layout_.discount_t);
  CopyInto(batch.weights, to + batch_layout_.weights);
  current().batch.Upload(host_batch_.span(), main_);
}

LearnerOutput CudaLearner::Update(const LearnerBatch& batch) {
  CheckBatch(batch);
  CancelPrelaunched();
  Stage(batch);
  update_graphs_[current_].Launch(main_);
  host_fresh_ = false;
  main_.Synchronize();
  const UpdateState& state = host_update_state_[0];
  if (state.finite == 0) {
    throw Error(ErrorKind::kNumeric, "update " + std::to_string(updates_ + 1) +
                                         ": the loss or the gradient is not finite (loss " +
                                         std::to_string(state.loss) + ")");
  }
  ++updates_;
  current_ = 1 - current_;
  return {.loss = state.loss,
          .gradient_norm = state.gradient_norm,
          .td_error = host_td_errors_.span(),
          .uncertainty = host_uncertainty_.span()};
}

// Where an update that reads this set finds its batch.
BatchPointers CudaLearner::BatchOf(ParameterSet& set) {
  std::byte* batch = set.batch.data();
  return {.observations = batch,
          .masks = reinterpret_cast<std::uint64_t*>(batch + batch_layout_.masks),
          .a_tm1 = reinterpret_cast<std::int32_t*>(batch + batch_layout_.a_tm1),
          .r_t = reinterpret_cast<float*>(batch + batch_layout_.r_t),
          .discount_t = reinterpret_cast<float*>(batch + batch_layout_.discount_t),
          .weights = reinterpret_cast<float*>(batch + batch_layout_.weights)};
}

void CudaLearner::QueueUpdates(ReplayGraphNodes& replay, int count, bool appends) {
  Launch(replay, {.appends = appends, .updates = count});
}

void CudaLearner::ActAndQueueUpdates(ReplayGraphNodes& replay, FramePointers frames, int decisions,
                                     int updates, cudaEvent_t batch_ready) {
  PutFrames(frames, decisions);
  Launch(replay, {.decisions = decisions, .updates = updates}, batch_ready);
}

void CudaLearner::Launch(ReplayGraphNodes& replay, GraphKey key, cudaEvent_t batch_ready) {
  UPER_CHECK(key.decisions <= spec_.batch, "the batch does not fit");
  UPER_CHECK(key.updates <= kMaxUpdatesPerCall, "too many updates at once");
  CancelPrelaunched();
  key.shares_gpu = key.updates > 0 && shares_gpu();
  Graph& graph = replay_graphs_[current_][key];
  if (!graph) {
    graph = Graph(main_, [&] {
      if (key.appends) replay.EnqueueAppend(main_);
      if (key.decisions > 0) EnqueueDecisions(replay, key.decisions);
      if (batch_ready == nullptr && key.updates > 0) {
        replay.EnqueueBatch(next_batch(), /*on_critical_path=*/!key.shares_gpu, main_);
      } else if (batch_ready != nullptr) {
        CheckCuda(cudaStreamWaitEvent(main_, batch_ready, cudaEventWaitExternal),
                  "cudaStreamWaitEvent");
      }
      EnqueueUpdates(replay, key.updates, key.shares_gpu);
    });
  }
  graph.Launch(main_);
  for (int b = 0; b < key.decisions; ++b) ++requested_[b];
  if (key.updates == 0) return;
  updates_ += key.updates;
  current_ = (current_ + key.updates) % 2;
  host_fresh_ = false;
}

std::span<const float> CudaLearner::gradient() {
  CancelPrelaunched();
  if (host_gradient_.size() == 0) host_gradient_ = FloatBuffer(layout_.size());
  LaunchHeadWeights(head_, HeadGradientOf(sets_[1 - current_]), gradient_.data() + head_w_, main_);
  gradient_.Download(host_gradient_.span(), main_);
  main_.Synchronize();
  return host_gradient_.span();
}

void CudaLearner::CopyTarget() {
  CancelPrelaunched();
  CopyOnGpu(current().online, target_, main_);
  const CudaHeadMeanWeights& mean_weights = current().mean_weights;
  CopyOnGpu(mean_weights.member_weights, target_mean_weights_.member_weights, main_);
  CopyOnGpu(mean_weights.member_bias, target_mean_weights_.member_bias, main_);
  CopyOnGpu(mean_weights.ensemble_weights, target_mean_weights_.ensemble_weights, main_);
  host_fresh_ = false;
}

LearnerState CudaLearner::State() {
  CancelPrelaunched();
  if (host_online_.size() == 0) {
    for (FloatBuffer* buffer :
         {&host_online_, &host_target_, &host_first_moment_, &host_second_moment_}) {
      *buffer = FloatBuffer(layout_.size());
    }
  }
  if (!host_fresh_) {
    current().online.Download(host_online_.span(), main_);
    target_.Download(host_target_.span(), main_);
    current().first_moment.Download(host_first_moment_.span(), main_);
    current().second_moment.Download(host_second_moment_.span(), main_);
    main_.Synchronize();
    host_fresh_ = true;
  }
  return {.online = host_online_.span(),
          .target = host_target_.span(),
          .first_moment = host_first_moment_.span(),
          .second_moment = host_second_moment_.span(),
          .updates = updates_};
}

void CudaLearner::CommitState(std::int64_t updates) {
  CancelPrelaunched();
  updates_ = updates;
  if (host_fresh_) {
    current().online.Upload(host_online_.span(), main_);
    target_.Upload(host_target_.span(), main_);
    current().first_moment.Upload(host_first_moment_.span(), main_);
    current().second_moment.Upload(host_second_moment_.span(), main_);
  }
  host_update_state_[0] = {.updates = updates};
  update_state_.Upload(host_update_state_.span(), main_);
  EnqueueMeanWeights(current().online.data(), current().mean_weights);
  EnqueueMeanWeights(target_.data(), target_mean_weights_);
  main_.Synchronize();
}

void CudaLearner::EnqueueMeanWeights(const float* parameters, CudaHeadMeanWeights& mean_weights) {
  LaunchHeadMeanWeights(head_, parameters + head_w_, parameters + head_b_, mean_weights.pointers(),
                        main_);
}

}  // namespace uper::cuda
