#include "uper/engine/cuda/cuda_replay.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "uper/base/check.h"
#include "uper/nn/cuda/runtime/mailbox.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper::cuda {
namespace {

constexpr std::size_t kBlocks = 4;            // in flight
constexpr std::size_t kRecordsOfABlock = 64;  // transitions of a block, and its frames
constexpr std::size_t kAppends = 8;           // in flight
// How many frames and transitions a graph can append: usually what one environment adds.
constexpr int kGraphItems = 4;
// While the GPU is busy, at least this many decisions wait for the updates that may be queued
// behind them. One graph for both saves some microseconds: what a graph prepares for its branches
// is done while its first kernel runs.
constexpr int kManyDecisions = 4;

DeviceReplaySpec Checked(const DeviceReplaySpec& spec) {
  UPER_CHECK(spec.capacity >= 1 && spec.capacity <= 0xFFFFFFFFU,
             "a capacity of 1 to 2^32 - 1 transitions");
  const std::size_t observations = spec.stack_depth > 0
                                       ? std::size_t{2} * spec.stack_depth * sizeof(std::uint32_t)
                                       : 2 * spec.observation_bytes;
  UPER_CHECK(spec.record_bytes == observations + sizeof(RecordTail),
             "the record size must fit the observations");
  UPER_CHECK(
      spec.stack_depth == 0 || (spec.observation_bytes == spec.stack_depth * spec.frame_bytes &&
                                spec.frame_capacity >= 1),
      "frames must fit the observations and the ring");
  return spec;
}

std::size_t TreeValues(const DeviceReplaySpec& spec) {
  return TreeShape(spec.capacity).nodes() * kTreeFanOut;
}

}  // namespace

static_assert(DeviceReplay::kMaxUpdatesPerCall == CudaLearner::kMaxUpdatesPerCall);

CudaReplay::CudaReplay(const DeviceReplaySpec& spec, CudaLearner& learner)
    : spec_(Checked(spec)),
      learner_(learner),
      batch_(learner.spec().batch),
      records_(spec.capacity * spec.record_bytes),
      frames_(spec.stack_depth > 0 ? spec.frame_capacity * spec.frame_bytes : 0),
      priorities_(spec.capacity),
      sums_(TreeValues(spec)),
      minima_(spec.normalization == WeightNormalization::kBufferMax ? TreeValues(spec) : 0),
      numbers_(1),
      memory_(spec),
      append_ring_(kAppends),
      appended_(1),
      slots_(batch_),
      probabilities_(batch_),
      noisy_(batch_),
      inputs_(kMaxUnreportedUpdates),
      uniforms_(spec.samples_on_device ? kMaxUnreportedUpdates * batch_ : 0),
      given_slots_(spec.samples_on_device ? 0 : kMaxUnreportedUpdates * batch_),
      given_weights_(given_slots_.size()),
      report_headers_(kMaxUnreportedUpdates),
      report_slots_(kMaxUnreportedUpdates * batch_),
      report_probabilities_(kMaxUnreportedUpdates * batch_),
      report_td_(kMaxUnreportedUpdates * batch_),
      report_weights_(kMaxUnreportedUpdates * batch_),
      report_noisy_(kMaxUnreportedUpdates * batch_),
      report_uncertainty_(kMaxUnreportedUpdates * batch_),
      report_priorities_(kMaxUnreportedUpdates * batch_),
      first_ids_(kMaxUnreportedUpdates),
      ids_(batch_),
      host_numbers_(1) {
  memory_.records = records_.data();
  memory_.frames = frames_.data();
  memory_.priorities = priorities_.data();
  memory_.sums = sums_.data();
  memory_.minima = minima_.data();
  memory_.numbers = numbers_.data();
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks_.push_back({.records = PinnedBuffer<std::byte>(kRecordsOfABlock * spec.record_bytes),
                       .frames = PinnedBuffer<std::byte>(
                           spec.stack_depth > 0 ? kRecordsOfABlock * spec.frame_bytes : 0)});
  }
  SynchronizeGpu("preparing the GPU");
  double largest = spec.initial_priority;
  float stored = 0;
  if (AcceptPriority(largest, stored)) largest = stored;
  SetPriorities({}, largest);
}

// Work in flight may still use the buffers that are freed next.
CudaReplay::~CudaReplay() {
  cudaStreamSynchronize(side_);
  learner_.AwaitEnd();
}

void CudaReplay::MirrorHost(const DeviceRecordSource& transitions,
                            const DeviceRecordSource& frames) {
  if (transitions.first_id >= next_id_) {
    // All transitions were evicted. Those that came and were evicted since the last call are
    // skipped.
    if (size() > 0) {
      Stage({.old_first_id = first_id_,
             .first_id = next_id_,
             .old_next_id = next_id_,
             .next_id = next_id_},
            nullptr, nullptr);
    }
    first_id_ = next_id_ = transitions.first_id;
  }
  if (spec_.stack_depth > 0) next_frame_ = std::max(next_frame_, frames.first_id);
  const std::uint64_t frames_end = spec_.stack_depth > 0 ? frames.next_id : next_frame_;
  while (first_id_ < transitions.first_id || next_id_ < transitions.next_id ||
         next_frame_ < frames_end) {
    const std::uint64_t end = std::min(transitions.next_id, next_id_ + kRecordsOfABlock);
    ReservedFrames* reserved = FindReserved(next_frame_);
    const std::uint64_t frame_end =
        std::min(frames_end, reserved != nullptr ? reserved->end : next_frame_ + kRecordsOfABlock);
    Block& block = NextBlock();
    const std::size_t count = end - next_id_;
    const std::size_t frame_count = frame_end - next_frame_;
    if (count > 0) {
      transitions.read(next_id_, end, block.records.span().first(count * spec_.record_bytes));
    }
    if (reserved == nullptr && frame_count > 0) {
      frames.read(next_frame_, frame_end,
                  block.frames.span().first(frame_count * spec_.frame_bytes));
    }
    Stage({.old_first_id = first_id_,
           .first_id = transitions.first_id,
           .old_next_id = next_id_,
           .next_id = end,
           .first_frame = next_frame_,
           .frame_count = static_cast<int>(frame_count),
           .records = block.records.data(),
           .frames =
               reserved != nullptr ? ReservedPixels(*reserved, next_frame_) : block.frames.data()},
          &block, reserved);
  }
}

std::span<std::byte> CudaReplay::ReserveFrames(std::uint64_t first, std::size_t count) {
  UPER_CHECK(spec_.stack_depth > 0 && count <= kMaxReservedFrames && count <= spec_.frame_capacity,
             "frames must fit the observations and the ring");
  ReservedFrames& reserved = reserved_frames_[next_reserved_];
  next_reserved_ = (next_reserved_ + 1) % reserved_frames_.size();
  if (staged_reserved_ == &reserved) LaunchStaged();
  if (reserved.pixels.size() == 0) {
    reserved.pixels = PinnedBuffer<std::byte>(kMaxReservedFrames * spec_.frame_bytes);
  }
  AwaitAppend(reserved.read_by);
  reserved.first = first;
  reserved.end = first + count;
  reserved.first_slot = frame_ring().SlotOf(first);
  return reserved.pixels.span().first(count * spec_.frame_bytes);
}

CudaReplay::ReservedFrames* CudaReplay::FindReserved(std::uint64_t frame) {
  const auto found = std::find_if(reserved_frames_.begin(), reserved_frames_.end(),
                                  [&](const ReservedFrames& reserved) {
                                    return reserved.first <= frame && frame < reserved.end;
                                  });
  return found == reserved_frames_.end() ? nullptr : &*found;
}

const std::byte* CudaReplay::ReservedPixels(const ReservedFrames& reserved,
                                            std::uint64_t frame) const {
  return reserved.pixels.data() + (frame - reserved.first) * spec_.frame_bytes;
}

CudaReplay::Block& CudaReplay::NextBlock() {
  Block& block = blocks_[next_block_];
  next_block_ = (next_block_ + 1) % blocks_.size();
  AwaitAppend(block.read_by);
  // Decisions may read frames of a block while an append copies them.
  if (deciding_ && ++blocks_meanwhile_ >= static_cast<int>(blocks_.size())) {
    CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
  }
  return block;
}

// Waits until the GPU has finished this append. It rarely has to wait.
void CudaReplay::AwaitAppend(std::uint64_t append) {
  const std::atomic_ref<std::uint64_t> appended(appended_[0]);
  SpinUntilPublished([&] { return appended.load(std::memory_order_acquire) >= append; },
                     [&] { return learner_.IsDone() && side_.IsDone(); });
}

void CudaReplay::Stage(const AppendBatch& append, Block* block, ReservedFrames* reserved) {
  LaunchStaged();
  staged_ = append;
  if (spec_.stack_depth > 0) staged_first_slot_ = frame_ring().SlotOf(append.first_frame);
  staged_block_ = block;
  staged_reserved_ = reserved;
  first_id_ = append.first_id;
  next_id_ = append.next_id;
  next_frame_ += append.frame_count;
}

// Writes the staged append to the ring entry that the next append kernel reads.
void CudaReplay::PublishStaged() {
  AwaitAppend(requested_appends_ < kAppends ? 0 : requested_appends_ + 1 - kAppends);
  append_ring_[requested_appends_++ % kAppends] = *staged_;
  if (staged_block_ != nullptr) staged_block_->read_by = requested_appends_;
  if (staged_reserved_ != nullptr) staged_reserved_->read_by = requested_appends_;
  staged_block_ = nullptr;
  staged_reserved_ = nullptr;
  staged_.reset();
}

// Returns whether the next graph must begin with the staged append. An append that is too large for
// the graph is launched at once.
bool CudaReplay::PublishStagedAppend() {
  if (!staged_) return false;
  if (staged_->items() > kGraphItems) {
    LaunchStaged();
    return false;
  }
  PublishStaged();
  return true;
}

void CudaReplay::LaunchStaged() {
  if (!staged_) return;
  LaunchDecisions();  // the decisions may read the staged frames
  PublishAndLaunchStaged(learner_.stream());
}

void CudaReplay::PublishAndLaunchStaged(cudaStream_t stream) {
  const int items = staged_->items();
  PublishStaged();
  LaunchAppend(memory_, AppendRingForKernels(), items, stream);
}

void CudaReplay::EnqueueAppend(cudaStream_t stream) {
  LaunchAppend(memory_, AppendRingForKernels(), kGraphItems, stream);
}

AppendRing CudaReplay::AppendRingForKernels() {
  return {.ring = append_ring_.data(),
          .size = static_cast<int>(kAppends),
          .appended = appended_.data()};
}

void CudaReplay::LaunchDecisions() {
  if (decisions_ == 0) return;
  learner_.BeginDecisions(*this, decision_frames_, std::exchange(decisions_, 0));
}

void CudaReplay::QueueUpdates(std::span<const DeviceUpdate> updates) {
  UPER_CHECK(queued_ - reported_ + updates.size() <= kMaxUnreportedUpdates,
             "too many updates without a report");
  UPER_CHECK(size() > 0, "the replay memory is empty");
  const int count = static_cast<int>(updates.size());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    PutInputs(updates[i], (queued_ + i) % kMaxUnreportedUpdates);
  }
  if (decisions_ > 0) {
    QueueBehindDecisions(count);
  } else {
    const bool appends = PublishStagedAppend();
    learner_.QueueUpdates(*this, count, appends);
  }
  queued_ += updates.size();
}

// While the decisions are computed, the side stream appends new transitions and draws the first
// batch.
void CudaReplay::QueueBehindDecisions(int updates) {
  CheckCuda(cudaStreamWaitEvent(side_, updated_), "cudaStreamWaitEvent");
  if (staged_) PublishAndLaunchStaged(side_);
  LaunchBatch(DrawTo(learner_.next_batch()), /*on_critical_path=*/!learner_.shares_gpu(), side_);
  batch_ready_.Record(side_);
  learner_.ActAndQueueUpdates(*this, decision_frames_, std::exchange(decisions_, 0), updates,
                              batch_ready_);
}

// Writes the inputs of an update's draw.
void CudaReplay::PutInputs(const DeviceUpdate& update, std::size_t entry) {
  inputs_[entry] = {.first_slot = ring().SlotOf(first_id_),
                    .size = size(),
                    .importance_exponent = update.importance_exponent};
  if (spec_.samples_on_device) {
    UPER_CHECK(update.uniforms.size() == batch_, "one random number per draw");
    std::copy(update.uniforms.begin(), update.uniforms.end(), &uniforms_[entry * batch_]);
  } else {
    UPER_CHECK(update.ids.size() == batch_ && update.weights.size() == batch_,
               "one id and one weight per draw");
    for (std::size_t j = 0; j < batch_; ++j) {
      UPER_CHECK(update.ids[j] - first_id_ < size(), "no such transition");
      given_slots_[entry * batch_ + j] = static_cast<std::uint32_t>(ring().SlotOf(update.ids[j]));
    }
    std::copy(update.weights.begin(), update.weights.end(), &given_weights_[entry * batch_]);
  }
  first_ids_[entry] = first_id_;
}

ReplayDraw CudaReplay::DrawTo(const BatchPointers& to) {
  return {.memory = memory_,
          .batch = static_cast<int>(batch_),
          .ring = static_cast<int>(kMaxUnreportedUpdates),
          .inputs = inputs_.data(),
          .uniforms = uniforms_.data(),
          .given_slots = given_slots_.data(),
          .given_weights = given_weights_.data(),
          .noisy = noisy_.data(),
          .slots = slots_.data(),
          .probabilities = probabilities_.data(),
          .out = to};
}

void CudaReplay::EnqueueBatch(const BatchPointers& to, bool on_critical_path, cudaStream_t stream) {
  LaunchBatch(DrawTo(to), on_critical_path, stream);
}

void CudaReplay::RecordStatistics(const SampleStatistics& statistics, cudaStream_t stream) {
  LaunchPriorities({.memory = memory_,
                    .batch = static_cast<int>(batch_),
                    .ring = static_cast<int>(kMaxUnreportedUpdates),
                    .slots = slots_.data(),
                    .probabilities = probabilities_.data(),
                    .noisy = noisy_.data(),
                    .weights = statistics.weights,
                    .td_error = statistics.td_error,
                    .uncertainty = statistics.uncertainty,
                    .reports = {.headers = report_headers_.data(),
                                .slots = report_slots_.data(),
                                .probabilities = report_probabilities_.data(),
                                .weights = report_weights_.data(),
                                .noisy = report_noisy_.data(),
                                .td_error = report_td_.data(),
                                .uncertainty = report_uncertainty_.data(),
                                .priorities = report_priorities_.data()}},
                   stream);
}

void CudaReplay::EnqueueEnd(const UpdateState* state, cudaStream_t stream, LaunchOrder order) {
  LaunchReport(memory_, static_cast<int>(kMaxUnreportedUpdates), state, report_headers_.data(),
               stream, order);
}

// Whether the GPU has finished this many updates.
bool CudaReplay::HasFinished(std::uint64_t updates) {
  if (updates == 0) return true;
  ReplayReportHeader& header = report_headers_[(updates - 1) % kMaxUnreportedUpdates];
  return std::atomic_ref(header.sequence).load(std::memory_order_acquire) == updates;
}

std::optional<DeviceUpdateReport> CudaReplay::PollReport() {
  if (reported_ == queued_ || !HasFinished(reported_ + 1)) return std::nullopt;
  return TakeReport();
}

std::optional<DeviceUpdateReport> CudaReplay::AwaitReport() {
  if (reported_ == queued_) return std::nullopt;
  if (!HasFinished(reported_ + 1)) {
    CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
    UPER_CHECK(HasFinished(reported_ + 1), "a report is missing");
  }
  return TakeReport();
}

// REQUIRES: the next unreported update has finished.
DeviceUpdateReport CudaReplay::TakeReport() {
  const std::size_t entry = reported_++ % kMaxUnreportedUpdates;
  const ReplayReportHeader& header = report_headers_[entry];
  const std::size_t first_slot = ring().SlotOf(first_ids_[entry]);
  const std::size_t at = entry * batch_;
  for (std::size_t j = 0; j < batch_; ++j) {
    ids_[j] = first_ids_[entry] + ring().RankOf(first_slot, report_slots_[at + j]);
  }
  return {.loss = header.update.loss,
          .gradient_norm = header.update.gradient_norm,
          .finite = header.update.finite != 0,
          .uniform_fallback = header.uniform_fallback != 0,
          .ids = ids_,
          .weights = report_weights_.span().subspan(at, batch_),
          .noisy = report_noisy_.span().subspan(at, batch_),
          .td_error = report_td_.span().subspan(at, batch_),
          .uncertainty = report_uncertainty_.span().subspan(at, batch_),
          .priorities = report_priorities_.span().subspan(at, batch_)};
}

std::span<const double> CudaReplay::ReportedProbabilities() const {
  UPER_CHECK(reported_ > 0, "no update was reported");
  const std::size_t entry = (reported_ - 1) % kMaxUnreportedUpdates;
  return report_probabilities_.span().subspan(entry * batch_, batch_);
}

void CudaReplay::BeginDecisions(std::span<const std::uint32_t> slots, int count) {
  UPER_CHECK(spec_.stack_depth > 0, "frames must be stacked");
  UPER_CHECK(slots.size() == count * std::size_t{1} * spec_.stack_depth,
             "the stacks must fit the count");
  decision_frames_.clear();
  for (const std::uint32_t slot : slots) decision_frames_.push_back(FrameAt(slot));
  decisions_ = count;
  deciding_ = true;
  blocks_meanwhile_ = 0;
  if (count >= kManyDecisions && !HasFinished(queued_)) return updated_.Record(learner_.stream());
  LaunchDecisions();
  LaunchStaged();
}

void CudaReplay::PrelaunchDecision() {
  if (decisions_ > 0 || !learner_.MayPrelaunch()) return;
  const bool appends = PublishStagedAppend();
  learner_.PrelaunchDecision(*this, appends);
}

void CudaReplay::AwaitActionValues(int count, std::span<float> q) {
  LaunchDecisions();
  learner_.AwaitActionValues(count, q);
  deciding_ = false;
}

// The address of a frame: in the GPU's ring, in a staged append, or in reserved memory.
const std::byte* CudaReplay::FrameAt(std::uint32_t slot) const {
  if (slot == FrameStore::kZeroSlot) return nullptr;
  UPER_CHECK(slot < spec_.frame_capacity, "no such frame");
  if (staged_) {
    const std::size_t index = frame_ring().RankOf(staged_first_slot_, slot);
    if (index < static_cast<std::size_t>(staged_->frame_count)) {
      return staged_->frames + index * spec_.frame_bytes;
    }
  }
  for (const ReservedFrames& reserved : reserved_frames_) {
    const std::uint64_t frame = reserved.first + frame_ring().RankOf(reserved.first_slot, slot);
    if (frame >= next_frame_ && frame < reserved.end) return ReservedPixels(reserved, frame);
  }
  return frames_.data() + slot * spec_.frame_bytes;
}

void CudaReplay::EnqueueObservations(const FramePointerEntry* frames, int count, std::byte* to,
                                     cudaStream_t stream) {
  LaunchGatherStacks(memory_, frames, count, to, stream);
}

void CudaReplay::GetPriorities(std::span<float> priorities, double& largest) {
  UPER_CHECK(priorities.size() == size(), "one priority per transition");
  LaunchStaged();
  if (host_priorities_.size() == 0) host_priorities_ = PinnedBuffer<float>(spec_.capacity);
  priorities_.Download(host_priorities_.span(), learner_.stream());
  numbers_.Download(host_numbers_.span(), learner_.stream());
  CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    priorities[i] = host_priorities_[ring().SlotOf(first_id_ + i)];
  }
  largest = host_numbers_[0].largest_priority;
}

void CudaReplay::SetPriorities(std::span<const float> priorities, double largest) {
  UPER_CHECK(priorities.size() == size(), "one priority per transition");
  LaunchStaged();
  if (host_priorities_.size() == 0) host_priorities_ = PinnedBuffer<float>(spec_.capacity);
  numbers_.Download(host_numbers_.span(), learner_.stream());
  CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
  std::fill_n(host_priorities_.data(), host_priorities_.size(), 0.0F);
  ReplayNumbers& numbers = host_numbers_[0];
  numbers.largest_priority = largest;
  numbers.positive_count = 0;
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    host_priorities_[ring().SlotOf(first_id_ + i)] = priorities[i];
    numbers.positive_count += priorities[i] > 0 ? 1 : 0;
  }
  priorities_.Upload(host_priorities_.span(), learner_.stream());
  numbers_.Upload(host_numbers_.span(), learner_.stream());
  LaunchRebuild(memory_, learner_.stream());
  CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
}

}  // namespace uper::cuda
