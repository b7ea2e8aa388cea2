#include "uper/engine/cuda/cuda_replay.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "uper/base/check.h"
#include "uper/nn/cuda/runtime/mailbox.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper {
namespace {

constexpr std::size_t kBlocks = 4;            // in flight
constexpr std::size_t kRecordsOfABlock = 64;  // transitions, and frames
constexpr std::size_t kGrowths = 8;           // in flight
// Frames and transitions that a graph begins with: what is new of one environment, as a rule.
constexpr int kGraphItems = 4;
// While the GPU is busy, so many decisions wait for the updates that may be queued behind them: as
// one graph the two take some microseconds less, because what a graph prepares for its branches is
// done while its first kernel runs.
constexpr int kManyDecisions = 4;

DeviceReplaySpec Checked(const DeviceReplaySpec& spec) {
  UPER_CHECK(spec.capacity >= 1 && spec.capacity <= 0xFFFFFFFFU, "a memory of 1 to 2^32 - 1");
  const std::size_t observations = spec.stack_depth > 0
                                       ? std::size_t{2} * spec.stack_depth * sizeof(std::uint32_t)
                                       : 2 * spec.observation_bytes;
  UPER_CHECK(spec.record_bytes == observations + sizeof(RecordTail), "records of another form");
  UPER_CHECK(
      spec.stack_depth == 0 || (spec.observation_bytes == spec.stack_depth * spec.frame_bytes &&
                                spec.frame_capacity >= 1),
      "frames of another form");
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
      growths_(kGrowths),
      grown_(1),
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

// Nothing may still use what is freed next.
CudaReplay::~CudaReplay() {
  cudaStreamSynchronize(side_);
  learner_.AwaitEnd();
}

void CudaReplay::MirrorHost(const DeviceRecordSource& transitions,
                            const DeviceRecordSource& frames) {
  if (transitions.first_id >= next_id_) {
    // All have left, and what came and left again since the last call is never looked at.
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
    FramesAhead* ahead = AheadAt(next_frame_);
    const std::uint64_t frame_end =
        std::min(frames_end, ahead != nullptr ? ahead->end : next_frame_ + kRecordsOfABlock);
    Block& block = NextBlock();
    const std::size_t count = end - next_id_;
    const std::size_t frame_count = frame_end - next_frame_;
    if (count > 0) {
      transitions.read(next_id_, end, block.records.span().first(count * spec_.record_bytes));
    }
    if (ahead == nullptr && frame_count > 0) {
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
           .frames = ahead != nullptr ? PixelsAhead(*ahead, next_frame_) : block.frames.data()},
          &block, ahead);
  }
}

std::span<std::byte> CudaReplay::ReserveFrames(std::uint64_t first, std::size_t count) {
  UPER_CHECK(spec_.stack_depth > 0 && count <= kMaxReservedFrames && count <= spec_.frame_capacity,
             "frames of another form");
  FramesAhead& ahead = frames_ahead_[next_ahead_];
  next_ahead_ = (next_ahead_ + 1) % frames_ahead_.size();
  if (staged_ahead_ == &ahead) LaunchStaged();
  if (ahead.pixels.size() == 0) {
    ahead.pixels = PinnedBuffer<std::byte>(kMaxReservedFrames * spec_.frame_bytes);
  }
  AwaitGrowth(ahead.taken);
  ahead.first = first;
  ahead.end = first + count;
  ahead.first_slot = first % spec_.frame_capacity;
  return ahead.pixels.span().first(count * spec_.frame_bytes);
}

CudaReplay::FramesAhead* CudaReplay::AheadAt(std::uint64_t frame) {
  const auto found = std::find_if(
      frames_ahead_.begin(), frames_ahead_.end(),
      [&](const FramesAhead& ahead) { return ahead.first <= frame && frame < ahead.end; });
  return found == frames_ahead_.end() ? nullptr : &*found;
}

const std::byte* CudaReplay::PixelsAhead(const FramesAhead& ahead, std::uint64_t frame) const {
  return ahead.pixels.data() + (frame - ahead.first) * spec_.frame_bytes;
}

CudaReplay::Block& CudaReplay::NextBlock() {
  Block& block = blocks_[next_block_];
  next_block_ = (next_block_ + 1) % blocks_.size();
  AwaitGrowth(block.taken);
  // Decisions read frames of a block beside the growth that takes them over.
  if (acting_ && ++blocks_meanwhile_ >= static_cast<int>(blocks_.size())) {
    CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
  }
  return block;
}

// Until the GPU has taken over that one. Hardly ever takes time.
void CudaReplay::AwaitGrowth(std::uint64_t growth) {
  const std::atomic_ref<std::uint64_t> grown(grown_[0]);
  AwaitShown([&] { return grown.load(std::memory_order_acquire) >= growth; },
             [&] { return learner_.IsDone() && side_.IsDone(); });
}

void CudaReplay::Stage(const ReplayGrowth& growth, Block* block, FramesAhead* ahead) {
  LaunchStaged();
  staged_ = growth;
  if (spec_.stack_depth > 0) staged_first_slot_ = growth.first_frame % spec_.frame_capacity;
  staged_block_ = block;
  staged_ahead_ = ahead;
  first_id_ = growth.first_id;
  next_id_ = growth.next_id;
  next_frame_ += growth.frame_count;
}

// Says where it is, for the next growth.
void CudaReplay::PutStaged() {
  AwaitGrowth(asked_growths_ < kGrowths ? 0 : asked_growths_ + 1 - kGrowths);
  growths_[asked_growths_++ % kGrowths] = *staged_;
  if (staged_block_ != nullptr) staged_block_->taken = asked_growths_;
  if (staged_ahead_ != nullptr) staged_ahead_->taken = asked_growths_;
  staged_block_ = nullptr;
  staged_ahead_ = nullptr;
  staged_.reset();
}

// Whether the next graph is to begin with it. More than a graph has blocks for is launched now.
bool CudaReplay::StagedGrowsInGraph() {
  if (!staged_) return false;
  if (staged_->items() > kGraphItems) {
    LaunchStaged();
    return false;
  }
  PutStaged();
  return true;
}

void CudaReplay::LaunchStaged() {
  if (!staged_) return;
  LaunchDecisions();  // they may read it
  PutAndLaunchStaged(learner_.stream());
}

void CudaReplay::PutAndLaunchStaged(cudaStream_t stream) {
  const int items = staged_->items();
  PutStaged();
  LaunchGrow(memory_, Growths(), items, stream);
}

void CudaReplay::EnqueueGrowth(cudaStream_t stream) {
  LaunchGrow(memory_, Growths(), kGraphItems, stream);
}

ReplayGrowths CudaReplay::Growths() {
  return {.ring = growths_.data(), .size = static_cast<int>(kGrowths), .shown = grown_.data()};
}

void CudaReplay::LaunchDecisions() {
  if (decisions_ == 0) return;
  learner_.BeginDecisions(*this, acting_frames_, std::exchange(decisions_, 0));
}

void CudaReplay::QueueUpdates(std::span<const DeviceUpdate> updates) {
  UPER_CHECK(queued_ - reported_ + updates.size() <= kMaxUnreportedUpdates,
             "reports of updates must be fetched");
  UPER_CHECK(size() > 0, "nothing to draw from");
  const int count = static_cast<int>(updates.size());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    PutInputs(updates[i], (queued_ + i) % kMaxUnreportedUpdates);
  }
  if (decisions_ > 0) {
    QueueBehindDecisions(count);
  } else {
    const bool grows = StagedGrowsInGraph();
    learner_.QueueUpdates(*this, count, grows);
  }
  queued_ += updates.size();
}

// While the decisions are made, what is new is stored and the first batch drawn.
void CudaReplay::QueueBehindDecisions(int updates) {
  CheckCuda(cudaStreamWaitEvent(side_, updated_), "cudaStreamWaitEvent");
  if (staged_) PutAndLaunchStaged(side_);
  LaunchBatch(DrawTo(learner_.next_batch()), /*urgent=*/!learner_.crowded(), side_);
  batch_ready_.Record(side_);
  learner_.ActAndQueueUpdates(*this, acting_frames_, std::exchange(decisions_, 0), updates,
                              batch_ready_);
}

// For the draw of an update.
void CudaReplay::PutInputs(const DeviceUpdate& update, std::size_t entry) {
  inputs_[entry] = {.first_slot = SlotOf(first_id_),
                    .size = size(),
                    .importance_exponent = update.importance_exponent};
  if (spec_.samples_on_device) {
    UPER_CHECK(update.uniforms.size() == batch_, "one random number a draw");
    std::copy(update.uniforms.begin(), update.uniforms.end(), &uniforms_[entry * batch_]);
  } else {
    UPER_CHECK(update.ids.size() == batch_ && update.weights.size() == batch_, "one id a draw");
    for (std::size_t j = 0; j < batch_; ++j) {
      UPER_CHECK(update.ids[j] - first_id_ < size(), "no such transition");
      given_slots_[entry * batch_ + j] = static_cast<std::uint32_t>(SlotOf(update.ids[j]));
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

void CudaReplay::EnqueueBatch(const BatchPointers& to, bool urgent, cudaStream_t stream) {
  LaunchBatch(DrawTo(to), urgent, stream);
}

void CudaReplay::EnqueueFindings(const SampleFindings& findings, cudaStream_t stream) {
  LaunchPriorities({.memory = memory_,
                    .batch = static_cast<int>(batch_),
                    .ring = static_cast<int>(kMaxUnreportedUpdates),
                    .slots = slots_.data(),
                    .probabilities = probabilities_.data(),
                    .noisy = noisy_.data(),
                    .weights = findings.weights,
                    .td_error = findings.td_error,
                    .uncertainty = findings.uncertainty,
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

void CudaReplay::EnqueueEnd(const StepState* step, cudaStream_t stream, uper::Follow follow) {
  LaunchReport(memory_, static_cast<int>(kMaxUnreportedUpdates), step, report_headers_.data(),
               stream, follow);
}

// Whether the GPU has made so many updates.
bool CudaReplay::HasMade(std::uint64_t updates) {
  if (updates == 0) return true;
  ReplayReportHeader& header = report_headers_[(updates - 1) % kMaxUnreportedUpdates];
  return std::atomic_ref(header.sequence).load(std::memory_order_acquire) == updates;
}

std::optional<DeviceUpdateReport> CudaReplay::NextReport(bool wait) {
  if (reported_ == queued_) return std::nullopt;
  const std::size_t entry = reported_ % kMaxUnreportedUpdates;
  if (!HasMade(reported_ + 1)) {
    if (!wait) return std::nullopt;
    CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
    UPER_CHECK(HasMade(reported_ + 1), "a report is missing");
  }
  ++reported_;
  const ReplayReportHeader& header = report_headers_[entry];
  const std::size_t first_slot = SlotOf(first_ids_[entry]);
  const std::size_t at = entry * batch_;
  for (std::size_t j = 0; j < batch_; ++j) {
    const std::size_t slot = report_slots_[at + j];
    const std::size_t rank =
        slot >= first_slot ? slot - first_slot : slot + spec_.capacity - first_slot;
    ids_[j] = first_ids_[entry] + rank;
  }
  return DeviceUpdateReport{.loss = header.step.loss,
                            .gradient_norm = header.step.gradient_norm,
                            .finite = header.step.finite != 0,
                            .massless = header.massless != 0,
                            .ids = ids_,
                            .probabilities = report_probabilities_.span().subspan(at, batch_),
                            .weights = report_weights_.span().subspan(at, batch_),
                            .noisy = report_noisy_.span().subspan(at, batch_),
                            .td_error = report_td_.span().subspan(at, batch_),
                            .uncertainty = report_uncertainty_.span().subspan(at, batch_),
                            .priorities = report_priorities_.span().subspan(at, batch_)};
}

void CudaReplay::BeginDecisions(std::span<const std::uint32_t> slots, int count) {
  UPER_CHECK(spec_.stack_depth > 0, "observations are stored whole");
  UPER_CHECK(slots.size() == count * std::size_t{1} * spec_.stack_depth,
             "the stacks must fit the count");
  acting_frames_.clear();
  for (const std::uint32_t slot : slots) acting_frames_.push_back(FrameAt(slot));
  decisions_ = count;
  acting_ = true;
  blocks_meanwhile_ = 0;
  if (count >= kManyDecisions && !HasMade(queued_)) return updated_.Record(learner_.stream());
  LaunchDecisions();
  LaunchStaged();
}

void CudaReplay::PrelaunchDecision() {
  if (decisions_ > 0 || !learner_.MayPrepareActing()) return;
  const bool grows = StagedGrowsInGraph();
  learner_.PrelaunchDecision(*this, grows);
}

void CudaReplay::AwaitActionValues(int count, std::span<float> q) {
  LaunchDecisions();
  learner_.AwaitActionValues(count, q);
  acting_ = false;
}

// Where a frame is: in the GPU's ring, on the way to it, or not stored yet.
const std::byte* CudaReplay::FrameAt(std::uint32_t slot) const {
  if (slot == FrameStore::kZeroSlot) return nullptr;
  UPER_CHECK(slot < spec_.frame_capacity, "no such frame");
  const auto behind = [&](std::size_t first) {  // how far, in the ring
    return slot >= first ? slot - first : slot + spec_.frame_capacity - first;
  };
  if (staged_) {
    const std::size_t index = behind(staged_first_slot_);
    if (index < static_cast<std::size_t>(staged_->frame_count)) {
      return staged_->frames + index * spec_.frame_bytes;
    }
  }
  for (const FramesAhead& ahead : frames_ahead_) {
    const std::uint64_t frame = ahead.first + behind(ahead.first_slot);
    if (frame >= next_frame_ && frame < ahead.end) return PixelsAhead(ahead, frame);
  }
  return frames_.data() + slot * spec_.frame_bytes;
}

void CudaReplay::EnqueueObservations(const PlaneEntry* planes, int count, std::byte* to,
                                     cudaStream_t stream) {
  LaunchGatherStacks(memory_, planes, count, to, stream);
}

void CudaReplay::GetPriorities(std::span<float> priorities, double& largest) {
  UPER_CHECK(priorities.size() == size(), "one priority a transition");
  LaunchStaged();
  if (host_priorities_.size() == 0) host_priorities_ = PinnedBuffer<float>(spec_.capacity);
  priorities_.Download(host_priorities_.span(), learner_.stream());
  numbers_.Download(host_numbers_.span(), learner_.stream());
  CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    priorities[i] = host_priorities_[SlotOf(first_id_ + i)];
  }
  largest = host_numbers_[0].largest_priority;
}

void CudaReplay::SetPriorities(std::span<const float> priorities, double largest) {
  UPER_CHECK(priorities.size() == size(), "one priority a transition");
  LaunchStaged();
  if (host_priorities_.size() == 0) host_priorities_ = PinnedBuffer<float>(spec_.capacity);
  numbers_.Download(host_numbers_.span(), learner_.stream());
  CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
  std::fill_n(host_priorities_.data(), host_priorities_.size(), 0.0F);
  ReplayNumbers& numbers = host_numbers_[0];
  numbers.largest_priority = largest;
  numbers.positive_count = 0;
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    host_priorities_[SlotOf(first_id_ + i)] = priorities[i];
    numbers.positive_count += priorities[i] > 0 ? 1 : 0;
  }
  priorities_.Upload(host_priorities_.span(), learner_.stream());
  numbers_.Upload(host_numbers_.span(), learner_.stream());
  LaunchRebuild(memory_, learner_.stream());
  CheckCuda(cudaStreamSynchronize(learner_.stream()), "waiting for the GPU");
}

}  // namespace uper
