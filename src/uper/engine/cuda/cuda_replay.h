#pragma once

#include <array>
#include <memory>
#include <vector>

#include "uper/engine/cuda/replay_kernels.h"
#include "uper/engine/device_replay.h"
#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/learner/replay_graph_nodes.h"
#include "uper/nn/cuda/runtime/device_buffer.h"
#include "uper/nn/cuda/runtime/graph.h"
#include "uper/replay/ring.h"

namespace uper::cuda {

// DeviceReplay in CUDA. It uses the learner's stream and a side stream, which appends new
// transitions and draws the next batch while many decisions are computed.
//
// New records travel in pinned blocks. A block may be reused once the append that reads it has
// finished. Append requests, update inputs and update reports use ring buffers. Decisions read the
// newest frames directly from pinned memory.
class CudaReplay final : public DeviceReplay, private ReplayGraphNodes {
 public:
  CudaReplay(const DeviceReplaySpec& spec, CudaLearner& learner);
  ~CudaReplay() override;

  const DeviceReplaySpec& spec() const override { return spec_; }
  void MirrorHost(const DeviceRecordSource& transitions, const DeviceRecordSource& frames) override;
  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override;
  void QueueUpdates(std::span<const DeviceUpdate> updates) override;
  std::optional<DeviceUpdateReport> PollReport() override;
  std::optional<DeviceUpdateReport> AwaitReport() override;
  bool HasPendingUpdates() override { return !HasFinished(queued_); }
  void BeginDecisions(std::span<const std::uint32_t> slots, int count) override;
  void AwaitActionValues(int count, std::span<float> q) override;
  void PrelaunchDecision() override;
  void GetPriorities(std::span<float> priorities, double& largest) override;
  void SetPriorities(std::span<const float> priorities, double largest) override;

  // The probabilities of the draws of the last report, if the GPU drew. Only tests need them.
  std::span<const double> ReportedProbabilities() const;

 private:
  // New records on their way to the GPU.
  struct Block {
    PinnedBuffer<std::byte> records, frames;
    std::uint64_t read_by = 0;  // number of the append that reads the block
  };
  // Memory for frames that the host has not stored yet.
  struct ReservedFrames {
    std::uint64_t first = 0, end = 0;
    std::size_t first_slot = 0;
    PinnedBuffer<std::byte> pixels;
    std::uint64_t read_by = 0;  // number of the append that reads it
  };

  void EnqueueBatch(const BatchPointers& to, bool on_critical_path, cudaStream_t stream) override;
  void EnqueueAppend(cudaStream_t stream) override;
  void RecordStatistics(const SampleStatistics& statistics, cudaStream_t stream) override;
  void EnqueueEnd(const UpdateState* state, cudaStream_t stream, LaunchOrder order) override;
  void EnqueueObservations(const FramePointerEntry* frames, int count, std::byte* to,
                           cudaStream_t stream) override;
  void PutInputs(const DeviceUpdate& update, std::size_t entry);
  ReplayDraw DrawTo(const BatchPointers& to);
  Block& NextBlock();
  ReservedFrames* FindReserved(std::uint64_t frame);
  const std::byte* ReservedPixels(const ReservedFrames& reserved, std::uint64_t frame) const;
  void Stage(const AppendBatch& append, Block* block, ReservedFrames* reserved);
  void PublishStaged();
  bool PublishStagedAppend();
  void LaunchStaged();
  void PublishAndLaunchStaged(cudaStream_t stream);
  AppendRing AppendRingForKernels();
  void AwaitAppend(std::uint64_t append);
  bool HasFinished(std::uint64_t updates);
  DeviceUpdateReport TakeReport();
  void LaunchDecisions();
  void QueueBehindDecisions(int updates);
  const std::byte* FrameAt(std::uint32_t slot) const;
  Ring ring() const { return {spec_.capacity}; }
  Ring frame_ring() const { return {spec_.frame_capacity}; }
  std::size_t size() const { return next_id_ - first_id_; }

  const DeviceReplaySpec spec_;
  CudaLearner& learner_;
  const std::size_t batch_;

  Stream side_;
  int decisions_ = 0;  // that wait for updates behind them, or for AwaitActionValues()
  std::vector<const std::byte*> decision_frames_;  // [decision, depth]: nullptr for zeros
  Event updated_;                                  // after everything queued before the decisions
  Event batch_ready_;                              // when the first update's batch is drawn

  DeviceBuffer<std::byte> records_, frames_;
  DeviceBuffer<float> priorities_;
  DeviceBuffer<double> sums_, minima_;
  DeviceBuffer<ReplayNumbers> numbers_;
  ReplayMemory memory_;

  // The ids that the GPU has or will have once the staged append has run.
  std::uint64_t first_id_ = 0, next_id_ = 0, next_frame_ = 0;
  std::vector<Block> blocks_;
  std::size_t next_block_ = 0;
  // The newest append is launched only when it is needed, so that decisions do not wait for it.
  std::optional<AppendBatch> staged_;
  Block* staged_block_ = nullptr;
  ReservedFrames* staged_reserved_ = nullptr;
  std::size_t staged_first_slot_ = 0;
  PinnedBuffer<AppendBatch> append_ring_;
  PinnedBuffer<std::uint64_t> appended_;  // number of appends that the GPU has finished
  std::uint64_t requested_appends_ = 0;
  bool deciding_ = false;  // decisions that may read blocks are under way
  int blocks_meanwhile_ = 0;

  // The frames of the last two calls of ReserveFrames(), and those that the GPU still reads.
  std::array<ReservedFrames, 3> reserved_frames_;
  std::size_t next_reserved_ = 0;

  // The samples of the draw in progress.
  DeviceBuffer<std::uint32_t> slots_;
  DeviceBuffer<double> probabilities_;
  DeviceBuffer<std::uint8_t> noisy_;

  // Ring buffers, [kMaxUnreportedUpdates] or [kMaxUnreportedUpdates, batch].
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
  std::vector<std::uint64_t> ids_;        // of the last report that was returned
  std::uint64_t queued_ = 0, reported_ = 0;

  PinnedBuffer<float> host_priorities_;
  PinnedBuffer<ReplayNumbers> host_numbers_;
};

}  // namespace uper::cuda
