#pragma once

#include <array>
#include <memory>
#include <vector>

#include "uper/engine/cuda/replay_kernels.h"
#include "uper/engine/device_replay.h"
#include "uper/nn/cuda/learner/batch_source.h"
#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/runtime/device_buffer.h"
#include "uper/nn/cuda/runtime/graph.h"

namespace uper {

// DeviceReplay in CUDA, on the learner's stream and on one beside it: while many decisions are
// made, what is new is stored and the next batch drawn. What the host hands over lies in pinned
// memory, which kernels read: new records in blocks, each with the number of the growth after which
// it may be filled again, growths, inputs and reports of updates in rings. Acting reads the newest
// frames where they are.
class CudaReplay final : public DeviceReplay, private BatchSource {
 public:
  CudaReplay(const DeviceReplaySpec& spec, CudaLearner& learner);
  ~CudaReplay() override;

  const DeviceReplaySpec& spec() const override { return spec_; }
  void MirrorHost(const DeviceRecordSource& transitions, const DeviceRecordSource& frames) override;
  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override;
  void QueueUpdates(std::span<const DeviceUpdate> updates) override;
  std::optional<DeviceUpdateReport> NextReport(bool wait) override;
  bool HasPendingUpdates() override { return !HasMade(queued_); }
  void BeginDecisions(std::span<const std::uint32_t> slots, int count) override;
  void AwaitActionValues(int count, std::span<float> q) override;
  void PrelaunchDecision() override;
  void GetPriorities(std::span<float> priorities, double& largest) override;
  void SetPriorities(std::span<const float> priorities, double largest) override;

 private:
  // Records on their way to the GPU.
  struct Block {
    PinnedBuffer<std::byte> records, frames;
    std::uint64_t taken = 0;  // by the GPU, with this growth
  };
  // Frames that the host has not stored yet.
  struct FramesAhead {
    std::uint64_t first = 0, end = 0;
    std::size_t first_slot = 0;
    PinnedBuffer<std::byte> pixels;
    std::uint64_t taken = 0;  // as above
  };

  void EnqueueBatch(const BatchPointers& to, bool urgent, cudaStream_t stream) override;
  void EnqueueGrowth(cudaStream_t stream) override;
  void EnqueueFindings(const SampleFindings& findings, cudaStream_t stream) override;
  void EnqueueEnd(const StepState* step, cudaStream_t stream, uper::Follow follow) override;
  void EnqueueObservations(const PlaneEntry* planes, int count, std::byte* to,
                           cudaStream_t stream) override;
  void PutInputs(const DeviceUpdate& update, std::size_t entry);
  ReplayDraw DrawTo(const BatchPointers& to);
  Block& NextBlock();
  FramesAhead* AheadAt(std::uint64_t frame);
  const std::byte* PixelsAhead(const FramesAhead& ahead, std::uint64_t frame) const;
  void Stage(const ReplayGrowth& growth, Block* block, FramesAhead* ahead);
  void PutStaged();
  bool StagedGrowsInGraph();
  void LaunchStaged();
  void PutAndLaunchStaged(cudaStream_t stream);
  ReplayGrowths Growths();
  void AwaitGrowth(std::uint64_t growth);
  bool HasMade(std::uint64_t updates);
  void LaunchDecisions();
  void QueueBehindDecisions(int updates);
  const std::byte* FrameAt(std::uint32_t slot) const;
  std::size_t SlotOf(std::uint64_t id) const { return id % spec_.capacity; }
  std::size_t size() const { return next_id_ - first_id_; }

  const DeviceReplaySpec spec_;
  CudaLearner& learner_;
  const std::size_t batch_;

  Stream side_;
  int decisions_ = 0;  // that wait for updates behind them, or for AwaitActionValues()
  std::vector<const std::byte*> acting_frames_;  // [decision, depth]: nullptr for zeros
  Event updated_;                                // what is before them
  Event batch_ready_;                            // of the first update behind them

  DeviceBuffer<std::byte> records_, frames_;
  DeviceBuffer<float> priorities_;
  DeviceBuffer<double> sums_, minima_;
  DeviceBuffer<ReplayNumbers> numbers_;
  ReplayMemory memory_;

  // What the GPU has, in the order of the calls.
  std::uint64_t first_id_ = 0, next_id_ = 0, next_frame_ = 0;
  std::vector<Block> blocks_;
  std::size_t next_block_ = 0;
  // The newest of it is handed over when it is needed, so that acting need not wait for that.
  std::optional<ReplayGrowth> staged_;
  Block* staged_block_ = nullptr;
  FramesAhead* staged_ahead_ = nullptr;
  std::size_t staged_first_slot_ = 0;
  PinnedBuffer<ReplayGrowth> growths_;  // ring
  PinnedBuffer<std::uint64_t> grown_;   // how many the GPU has taken over
  std::uint64_t asked_growths_ = 0;
  bool acting_ = false;  // decisions may read blocks
  int blocks_meanwhile_ = 0;

  // One on its way to the GPU, and two of the last calls.
  std::array<FramesAhead, 3> frames_ahead_;
  std::size_t next_ahead_ = 0;

  // Of the draw under way.
  DeviceBuffer<std::uint32_t> slots_;
  DeviceBuffer<double> probabilities_;
  DeviceBuffer<std::uint8_t> noisy_;

  // Rings, [kMaxUnreportedUpdates] or [kMaxUnreportedUpdates, batch].
  PinnedBuffer<ReplayInputs> inputs_;
  PinnedBuffer<double> uniforms_;
  PinnedBuffer<std::uint32_t> given_slots_;
  PinnedBuffer<float> given_weights_;
  PinnedBuffer<ReplayReportHeader> report_headers_;
  PinnedBuffer<std::uint32_t> report_slots_;
  PinnedBuffer<double> report_probabilities_, report_td_;
  PinnedBuffer<float> report_weights_;
  PinnedBuffer<std::uint8_t> report_noisy_;
  PinnedBuffer<Uncertainty> report_uncertainty_;
  PinnedBuffer<Priority> report_priorities_;
  std::vector<std::uint64_t> first_ids_;  // of each queued update, by ring entry
  std::vector<std::uint64_t> ids_;        // of the report that was handed out last
  std::uint64_t queued_ = 0, reported_ = 0;

  PinnedBuffer<float> host_priorities_;
  PinnedBuffer<ReplayNumbers> host_numbers_;
};

}  // namespace uper
