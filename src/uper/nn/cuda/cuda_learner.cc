#include "uper/nn/cuda/cuda_learner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "uper/base/check.h"
#include "uper/nn/cuda/cuda_replay.h"
#include "uper/nn/cuda/dense_step.h"
#include "uper/nn/cuda/observation_kernels.h"

namespace uper {
namespace {

const LearnerSpec& Validated(const LearnerSpec& spec) {
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

// Whose passes through the torso one update needs.
int PassesOf(const LearnerSpec& spec) { return spec.loss.double_q ? 3 : 2; }

}  // namespace

CudaHeadTables::CudaHeadTables(const NetworkSpec& spec)
    : member_weights(std::size_t{1} * spec.members * spec.hidden_units * spec.actions),
      member_bias(std::size_t{1} * spec.members * spec.actions),
      mean_weights(std::size_t{1} * spec.hidden_total() * spec.actions),
      mean_bias(std::size_t{1} * spec.actions) {}

HeadTablePointers CudaHeadTables::pointers() {
  return {.member_weights = member_weights.data(),
          .member_bias = member_bias.data(),
          .mean_weights = mean_weights.data(),
          .mean_bias = mean_bias.data()};
}

ParameterSet::ParameterSet(const NetworkSpec& spec, std::size_t size)
    : online(size), first_moment(size), second_moment(size), tables(spec) {}

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
      torso_(spec.network, layout_,
             {.max_batch = spec.batch,
              .tuned_batch = spec.batch,
              .max_passes = PassesOf(spec),
              .backward = true}),
      acting_torso_(
          spec.network, layout_,
          {.max_batch = spec.batch, .tuned_batch = 1, .max_passes = 1, .backward = false}),
      sets_{ParameterSet(spec.network, layout_.size()), ParameterSet(spec.network, layout_.size())},
      target_(layout_.size()),
      target_tables_(spec.network),
      step_(1),
      batch_layout_(spec),
      host_batch_(batch_layout_.size),
      batch_(batch_layout_.size),
      observations_(std::size_t{2} * spec.batch * spec.network.observation_size()),
      gradient_(layout_.size()),
      host_step_(1),
      td_errors_(spec.batch),
      uncertainty_(spec.batch),
      host_td_errors_(spec.batch),
      host_uncertainty_(spec.batch),
      acting_activations_(acting_torso_.MakeActivations()) {
  const std::size_t batch = spec.batch;
  const std::size_t members = spec.network.members;
  const std::size_t actions = spec.network.actions;
  const std::size_t outputs = batch * spec.network.member_outputs();
  for (int i = 0; i < PassesOf(spec); ++i) activations_.push_back(torso_.MakeActivations());
  member_values_ = DeviceBuffer<float>(batch * members * actions);
  target_actions_ = DeviceBuffer<int>(batch * members);
  online_parts_ = DeviceBuffer<float>(kHeadParts * outputs);
  target_parts_ = DeviceBuffer<float>(kHeadParts * outputs);
  online_outputs_ = DeviceBuffer<float>(outputs);
  target_outputs_ = DeviceBuffer<float>(outputs);
  d_outputs_ = DeviceBuffer<float>(outputs);
  members_ = DeviceBuffer<MemberFindings>(batch * members);
  hidden_parts_ = DeviceBuffer<float>(members * batch * spec.network.hidden_units);
  squares_ =
      DeviceBuffer<double>(torso_.SquareCount() + HeadSquareCount(head_) + BiasBlocks(head_) +
                           DenseStepBlocks(torso_.hidden_inputs(), head_.hidden_total()));
  if (spec.loss.head == HeadKind::kCategorical) {
    all_parts_ = DeviceBuffer<float>(kHeadParts * outputs * actions);
    quantiles_ = DeviceBuffer<float>(2 * outputs);
    acting_values_ = DeviceBuffer<float>(batch * members * actions);
  }
  host_observations_ = PinnedBuffer<std::byte>(batch * ObservationBytes(spec.network));
  acting_bytes_ = DeviceBuffer<std::byte>(host_observations_.size());
  acting_observations_ = DeviceBuffer<float>(batch * spec.network.observation_size());
  q_ = PinnedBuffer<float>(batch * actions);
  acting_counts_ = DeviceBuffer<int>(batch);
  shown_counts_ = PinnedBuffer<int>(batch);
  seen_counts_.resize(batch);
  SynchronizeGpu("preparing the GPU");  // the zeros are there for all streams
  for (int i = 0; i < 2; ++i) {
    update_graphs_[i] = Graph(main_, [&] {
      EnqueueUpdate(sets_[i], sets_[1 - i], nullptr);
      EnqueueFindings();
    });
    acting_graphs_[i].resize(batch + 1);
    source_acting_graphs_[i].resize(batch + 1);
  }
}

// Nothing may still read the buffers that are freed next. An error would come too late to matter.
CudaLearner::~CudaLearner() { cudaStreamSynchronize(main_); }

void CudaLearner::CheckBatch(const LearnerBatch& batch) const {
  const std::size_t size = spec_.batch;
  UPER_CHECK(batch.a_tm1.size() == size && batch.r_t.size() == size &&
                 batch.discount_t.size() == size && batch.weights.size() == size &&
                 batch.masks.size() == size,
             "a batch has as many transitions as the learner was made for");
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
  batch_.Upload(host_batch_.span(), main_);
}

LearnerOutput CudaLearner::Update(const LearnerBatch& batch) {
  BeginUpdate(batch);
  return FinishUpdate();
}

void CudaLearner::BeginUpdate(const LearnerBatch& batch) {
  UPER_CHECK(!begun_, "an update is under way already");
  CheckBatch(batch);
  Stage(batch);
  LaunchUpdate();
}

void CudaLearner::LaunchUpdate() {
  update_graphs_[current_].Launch(main_);
  begun_ = true;
}

LearnerOutput CudaLearner::FinishUpdate() {
  UPER_CHECK(begun_, "no update is under way");
  begun_ = false;
  host_fresh_ = false;
  main_.Synchronize();
  const StepState& step = host_step_[0];
  if (step.finite == 0) {
    throw Error(ErrorKind::kNumeric, "update " + std::to_string(updates_ + 1) +
                                         ": the loss or the gradient is not finite (loss " +
                                         std::to_string(step.loss) + ")");
  }
  ++updates_;
  current_ = 1 - current_;
  return {.loss = step.loss,
          .gradient_norm = step.gradient_norm,
          .td_error = host_td_errors_.span(),
          .uncertainty = host_uncertainty_.span()};
}

// The statistics of an update, to the host.
void CudaLearner::EnqueueFindings() {
  td_errors_.Download(host_td_errors_.span(), main_);
  uncertainty_.Download(host_uncertainty_.span(), main_);
}

BatchPointers CudaLearner::BatchOnGpu() {
  std::byte* batch = batch_.data();
  return {.observations = batch,
          .masks = reinterpret_cast<std::uint64_t*>(batch + batch_layout_.masks),
          .a_tm1 = reinterpret_cast<std::int32_t*>(batch + batch_layout_.a_tm1),
          .r_t = reinterpret_cast<float*>(batch + batch_layout_.r_t),
          .discount_t = reinterpret_cast<float*>(batch + batch_layout_.discount_t),
          .weights = reinterpret_cast<float*>(batch + batch_layout_.weights)};
}

std::unique_ptr<GpuReplay> CudaLearner::MakeReplay(const GpuReplaySpec& spec) {
  return std::make_unique<CudaReplay>(spec, *this);
}

void CudaLearner::QueueUpdate(BatchSource& source) {
  UPER_CHECK(!begun_, "an update is under way");
  Graph& graph = source_graphs_[current_];
  if (!graph) {
    graph = Graph(main_, [&] {
      source.EnqueueBatch(BatchOnGpu(), main_);
      EnqueueUpdate(current(), sets_[1 - current_], &source);
      source.EnqueueEnd(step_.data(), main_);
    });
  }
  graph.Launch(main_);
  ++updates_;
  current_ = 1 - current_;
  host_fresh_ = false;
}

LearnerOutput CudaLearner::UpdateAgain() {
  UPER_CHECK(!begun_, "an update is under way already");
  LaunchUpdate();
  return FinishUpdate();
}

Torso::Pass CudaLearner::PassOf(Slot slot, ParameterSet& set) {
  const std::size_t s_t = std::size_t{1} * spec_.batch * spec_.network.observation_size();
  return {.parameters = slot == kTarget ? target_.data() : set.online.data(),
          .observations = observations_.data() + (slot == kOnline ? 0 : s_t),
          .pixels = batch_.data() + (slot == kOnline ? 0 : batch_layout_.observation_bytes),
          .activations = &activations_[slot]};
}

void CudaLearner::EnqueueUpdate(ParameterSet& from, ParameterSet& to, BatchSource* source) {
  ahead_fork_.Order(main_, ahead_);
  LaunchBeginStep(rules_, step_.data(), ahead_);
  EnqueueForward(from);
  CheckCuda(cudaEventRecord(begin_done_, ahead_), "cudaEventRecord");
  EnqueueSelections(from);
  const SampleCall samples = Samples(from);
  LaunchSamples(samples, main_, Follow::kOverlap);
  ahead_fork_.Order(main_, ahead_);
  EnqueueHeadStep(StepKind::kAhead, from, to, ahead_);
  fork_.Order(main_, third_);
  EnqueueStatistics(samples, source);
  EnqueueBackward(from, to);
  EnqueueNormAndOptimizer(from, to);
}

void CudaLearner::EnqueueForward(ParameterSet& from) {
  if (torso_.reads_pixels()) {  // only the backward pass needs them: s_tm1
    LaunchConvertObservations(spec_.network.input, batch_.data(), spec_.batch, observations_.data(),
                              ahead_);
  } else {
    LaunchConvertObservations(spec_.network.input, batch_.data(), 2 * spec_.batch,
                              observations_.data(), main_);
  }
  std::vector<Torso::Pass> passes;
  for (int slot = 0; slot < PassesOf(spec_); ++slot) {
    passes.push_back(PassOf(static_cast<Slot>(slot), from));
  }
  torso_.Forward(passes, spec_.batch, main_);
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
    LaunchSelect(head_, spec_.batch,
                 {.w = parameters + head_w_,
                  .hidden = activations_[slot].hidden(),
                  .parts = all_parts_.data()},
                 main_);
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

// The outputs of the taken actions beside the means that choose the target's actions, and then
// theirs.
void CudaLearner::EnqueueSelections(ParameterSet& from) {
  HeadForward first{.list = {{.w = from.online.data() + head_w_,
                              .hidden = activations_[kOnline].hidden(),
                              .actions = Staged<int>(batch_layout_.a_tm1),
                              .sample_stride = 1,
                              .actions_ready = true,
                              .parts = online_parts_.data()}},
                    .selections = 1};
  if (spec_.loss.head != HeadKind::kCategorical) {
    const Slot slot = ChoosingSlot();
    first.means = MeansOf(activations_[slot].hidden(), slot == kNext ? from.tables : target_tables_,
                          spec_.batch);
    if (spec_.loss.target_action != TargetAction::kEnsemble) {
      first.means.chosen = target_actions_.data();
    }
  }
  LaunchHeadForward(head_, spec_.batch, first, main_, Follow::kOverlap);
  EnqueueTargetActions(from);
  LaunchSelect(head_, spec_.batch,
               {.w = target_.data() + head_w_,
                .hidden = activations_[kTarget].hidden(),
                .actions = target_actions_.data(),
                .sample_stride = head_.members,
                .member_stride = 1,
                .parts = target_parts_.data()},
               main_, Follow::kOverlap);
}

SampleCall CudaLearner::Samples(ParameterSet& from) {
  return {.loss = spec_.loss,
          .shape = head_,
          .batch = spec_.batch,
          .online_parts = online_parts_.data(),
          .target_parts = target_parts_.data(),
          .online_bias = from.online.data() + head_b_,
          .target_bias = target_.data() + head_b_,
          .actions = Staged<int>(batch_layout_.a_tm1),
          .target_actions = target_actions_.data(),
          .r_t = Staged<float>(batch_layout_.r_t),
          .discount_t = Staged<float>(batch_layout_.discount_t),
          .weights = Staged<float>(batch_layout_.weights),
          .masks = Staged<std::uint64_t>(batch_layout_.masks),
          .online = online_outputs_.data(),
          .target = target_outputs_.data(),
          .d_out = d_outputs_.data(),
          .members = members_.data()};
}

HeadGradient CudaLearner::HeadGradientOf() const {
  return {.batch = spec_.batch,
          .actions = Staged<int>(batch_layout_.a_tm1),
          .masks = Staged<std::uint64_t>(batch_layout_.masks),
          .hidden = activations_[kOnline].hidden(),
          .d_out = d_outputs_.data()};
}

// On the third stream, beside the backward pass: first what the norm waits for.
void CudaLearner::EnqueueStatistics(const SampleCall& samples, BatchSource* source) {
  const HeadGradient gradient = HeadGradientOf();
  double* squares = squares_.data() + torso_.SquareCount();  // behind those of the torso
  LaunchHeadSquares(head_, gradient, squares, third_);
  LaunchBackwardBias(head_, gradient, gradient_.data() + head_b_, squares + HeadSquareCount(head_),
                     third_);
  CheckCuda(cudaEventRecord(squares_done_, third_), "cudaEventRecord");
  LaunchStatistics({.samples = samples,
                    .quantiles = quantiles_.data(),
                    .td_error = td_errors_.data(),
                    .uncertainty = uncertainty_.data()},
                   third_);
  if (source != nullptr) {
    source->EnqueueFindings({.weights = Staged<float>(batch_layout_.weights),
                             .td_error = td_errors_.data(),
                             .uncertainty = uncertainty_.data()},
                            third_);
  }
  CheckCuda(cudaEventRecord(third_done_, third_), "cudaEventRecord");
}

void CudaLearner::EnqueueBackward(ParameterSet& from, ParameterSet& to) {
  const HeadGradient gradient = HeadGradientOf();
  LaunchBackwardHidden(head_, gradient, from.online.data() + head_w_, hidden_parts_.data(), main_,
                       Follow::kOverlap);
  LaunchSumHidden(head_, gradient, hidden_parts_.data(), torso_.d_hidden(), main_,
                  Follow::kOverlap);
  // The hidden layer's gradient is there long before that of the convolutions.
  const auto step_hidden = [&](const float* inputs) {
    fourth_fork_.Order(main_, fourth_);
    CheckCuda(cudaStreamWaitEvent(fourth_, begin_done_), "cudaStreamWaitEvent");
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
                    fourth_);
  };
  torso_.Backward(PassOf(kOnline, from), gradient_.data(), squares_.data(),
                  {.main = main_,
                   .side = side_,
                   .fork = fork_,
                   .join = join_,
                   .observations_ready = begin_done_,
                   .hidden_weights = step_hidden});
  fourth_done_.Order(fourth_, main_);
  CheckCuda(cudaStreamWaitEvent(main_, squares_done_), "cudaStreamWaitEvent");
}

void CudaLearner::EnqueueHeadStep(StepKind kind, ParameterSet& from, ParameterSet& to,
                                  cudaStream_t stream) {
  LaunchHeadOptimizer(rules_, kind, head_, HeadGradientOf(),
                      {from.block(head_w_), to.block(head_w_)}, step_.data(), to.tables.pointers(),
                      stream);
}

void CudaLearner::EnqueueNormAndOptimizer(ParameterSet& from, ParameterSet& to) {
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
  ahead_done_.Order(ahead_, main_);
  EnqueueHeadStep(StepKind::kAgain, from, to, main_);
  CheckCuda(cudaStreamWaitEvent(main_, third_done_), "cudaStreamWaitEvent");
}

std::span<const float> CudaLearner::gradient() {
  if (host_gradient_.size() == 0) host_gradient_ = FloatBuffer(layout_.size());
  LaunchHeadWeights(head_, HeadGradientOf(), gradient_.data() + head_w_, main_);
  gradient_.Download(host_gradient_.span(), main_);
  main_.Synchronize();
  return host_gradient_.span();
}

void CudaLearner::ActionValues(std::span<const std::byte> observations, int count,
                               std::span<float> q) {
  UPER_CHECK(!begun_, "an update is under way");
  UPER_CHECK(count >= 1 && count <= spec_.batch, "the batch does not fit");
  UPER_CHECK(observations.size() == count * ObservationBytes(spec_.network) &&
                 q.size() == std::size_t{1} * count * spec_.network.actions,
             "observations and values must fit the count");
  Graph& graph = acting_graphs_[current_][count];
  if (!graph) {
    const std::byte* from =
        ReadsHostObservations(count) ? host_observations_.data() : acting_bytes_.data();
    graph = Graph(main_, [&] { EnqueueActing(current(), count, from); });
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
    CopyInto(observations.subspan(at, size), host_observations_.data() + at);
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
  UPER_CHECK(!begun_, "an update is under way");
  UPER_CHECK(count >= 1 && count <= spec_.batch, "the batch does not fit");
  Graph& graph = source_acting_graphs_[current_][count];
  if (!graph) {
    graph = Graph(main_, [&] {
      source.EnqueueObservations(count, acting_bytes_.data(), main_);
      EnqueueActing(current(), count, acting_bytes_.data());
    });
  }
  graph.Launch(main_);
}

void CudaLearner::FinishActing(int count, std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * count * spec_.network.actions,
             "values must fit the count");
  AwaitActionValues(count);
  std::copy_n(q_.data(), q.size(), q.begin());
}

void CudaLearner::EnqueueActing(ParameterSet& set, int count, const std::byte* observations) {
  if (!acting_torso_.reads_pixels()) {
    LaunchConvertObservations(spec_.network.input, observations, count, acting_observations_.data(),
                              main_);
  }
  const Torso::Pass pass{.parameters = set.online.data(),
                         .observations = acting_observations_.data(),
                         .pixels = observations,
                         .activations = &acting_activations_};
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
                 .bias = set.tables.mean_bias.data(),
                 .values = q_.data(),
                 .counts = acting_counts_.data(),
                 .shown_counts = shown_counts_.data()},
                main_, Follow::kOverlap);
    return;
  }
  const HeadSelection all{.w = set.online.data() + head_w_,
                          .hidden = acting_activations_.hidden(),
                          .parts = all_parts_.data()};
  LaunchSelect(head_, count, all, main_);
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

void CudaLearner::CopyTarget() {
  UPER_CHECK(!begun_, "an update is under way");
  CopyOnGpu(current().online, target_, main_);
  const CudaHeadTables& tables = current().tables;
  CopyOnGpu(tables.member_weights, target_tables_.member_weights, main_);
  CopyOnGpu(tables.member_bias, target_tables_.member_bias, main_);
  CopyOnGpu(tables.mean_weights, target_tables_.mean_weights, main_);
  CopyOnGpu(tables.mean_bias, target_tables_.mean_bias, main_);
  host_fresh_ = false;
}

LearnerState CudaLearner::State() {
  UPER_CHECK(!begun_, "an update is under way");
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

void CudaLearner::SetUpdated(std::int64_t updates) {
  UPER_CHECK(!begun_, "an update is under way");
  updates_ = updates;
  if (host_fresh_) {
    current().online.Upload(host_online_.span(), main_);
    target_.Upload(host_target_.span(), main_);
    current().first_moment.Upload(host_first_moment_.span(), main_);
    current().second_moment.Upload(host_second_moment_.span(), main_);
  }
  host_step_[0] = {.updates = updates};
  step_.Upload(host_step_.span(), main_);
  EnqueueTables(current().online.data(), current().tables);
  EnqueueTables(target_.data(), target_tables_);
  main_.Synchronize();
}

void CudaLearner::EnqueueTables(const float* parameters, CudaHeadTables& tables) {
  LaunchTables(head_, parameters + head_w_, parameters + head_b_, tables.pointers(), main_);
}

}  // namespace uper
