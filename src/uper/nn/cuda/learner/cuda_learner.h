#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <map>
#include <vector>

#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/learner/replay_graph_nodes.h"
#include "uper/nn/cuda/learner/torso.h"
#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/runtime/device_buffer.h"
#include "uper/nn/cuda/runtime/graph.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/gpu.h"

namespace uper::cuda {

// Mean weights of a head, in the GPU's memory.
struct CudaHeadMeanWeights {
  explicit CudaHeadMeanWeights(const NetworkSpec& spec);
  HeadMeanWeightPointers pointers();

  DeviceBuffer<float> member_weights, member_bias, ensemble_weights;
  DeviceBuffer<unsigned> members_done;
};

// Everything that an update changes, and the batch that it learns from. There are two sets. An
// update reads one set and writes the parameters of the other. Meanwhile the next batch may be
// written to the other set.
struct ParameterSet {
  ParameterSet(const NetworkSpec& spec, std::size_t size, std::size_t batch_bytes);
  ParameterBlock block(std::size_t offset);

  DeviceBuffer<float> online, first_moment, second_moment;
  CudaHeadMeanWeights mean_weights;  // of `online`
  DeviceBuffer<std::byte> batch;
};

// Where the parts of a batch lie in one block of memory, so that one copy brings it to the GPU.
struct BatchLayout {
  explicit BatchLayout(const LearnerSpec& spec);

  std::size_t observation_bytes;  // of all s_tm1; s_t follows
  std::size_t masks, a_tm1, r_t, discount_t, weights;
  std::size_t size;
};

// The learner on the GPU, in plain fp32 except for the GEMMs of the torso (LearnerSpec::precision).
// One update is one CUDA graph: forward passes, targets, losses, backward pass, norm, optimizer and
// statistics. The host is not involved, and nothing is allocated. All sums have a fixed order.
//
// The stored gradient covers everything except the head's weights. Their gradient exists only in
// registers, unless gradient() asks for it. The head's optimizer is memory-bound and runs beside
// the torso's backward pass, which is compute-bound. That is why there are two parameter sets.
class CudaLearner final : public Learner {
 public:
  // Parameters start as zeros. Throws Error(kResources) if the GPU's memory is too small.
  explicit CudaLearner(const LearnerSpec& spec);
  ~CudaLearner() override;

  const LearnerSpec& spec() const override { return spec_; }
  const ParameterLayout& layout() const override { return layout_; }
  LearnerOutput Update(const LearnerBatch& batch) override;
  std::span<const float> gradient() override;
  void ActionValues(std::span<const std::byte> observations, int count,
                    std::span<float> q) override;
  void CopyTarget() override;
  LearnerState State() override;
  void CommitState(std::int64_t updates) override;
  std::int64_t updates() override { return updates_; }

  // For the one replay memory on the GPU. Its work is ordered on stream(). Ask for the stream each
  // time, because the call cancels a prelaunched decision.
  cudaStream_t stream() {
    CancelPrelaunched();
    return main_;
  }
  // Runs updates with batches of the replay memory, in one graph. Returns at once. The replay
  // memory reports whether the updates were finite.
  static constexpr int kMaxUpdatesPerCall = 8;
  // `appends`: the graph begins with the replay memory's append.
  void QueueUpdates(ReplayGraphNodes& replay, int count, bool appends);
  BatchPointers next_batch() { return BatchOf(current()); }  // where the first batch must be
  // Like ActionValues(), for observations whose frames [count, frame] are in the GPU's or in pinned
  // memory (nullptr: zeros). Work that is enqueued between the two calls does not delay the second.
  using FramePointers = std::span<const std::byte* const>;
  void BeginDecisions(ReplayGraphNodes& replay, FramePointers frames, int count);
  void AwaitActionValues(int count, std::span<float> q);
  // Launches the next decision's kernels early; they wait on the GPU for BeginDecisions(). Any
  // other call cancels it. Affects speed only. REQUIRES: MayPrelaunch().
  void PrelaunchDecision(ReplayGraphNodes& replay, bool appends);
  // Whether a decision can be prelaunched, and whether that probably saves time.
  bool MayPrelaunch() const;
  // BeginDecisions() and QueueUpdates() in one graph. The replay memory draws the first batch to
  // next_batch(). `batch_ready` is the event of its end: always the same event, recorded before the
  // call.
  void ActAndQueueUpdates(ReplayGraphNodes& replay, FramePointers frames, int decisions,
                          int updates, cudaEvent_t batch_ready);
  // Whether the GPU is shared with other learners of this process. Kernels then leave room for the
  // kernels of the other learners, and no kernel waits for the host. Results do not change.
  static bool shares_gpu() { return learners_ > 1; }
  // Whether all work has ended. Throws if something failed on the GPU.
  bool IsDone() const { return main_.IsDone(); }
  // Waits for all work and ignores errors.
  void AwaitEnd() noexcept { cudaStreamSynchronize(main_); }

 private:
  // The passes of an update through the torso.
  enum PassIndex { kOnline, kTarget, kNext, kPasses };

  void CheckBatch(const LearnerBatch& batch) const;
  void Stage(const LearnerBatch& batch);
  BatchPointers BatchOf(ParameterSet& set);
  // Place of an update among the updates of its graph. `replay` records the statistics and draws
  // the next batch; null: the host gives batches.
  struct ChainPosition {
    ReplayGraphNodes* replay = nullptr;
    bool first = true, last = true;
    bool shares_gpu = false;
  };
  // The work that a graph does for the replay memory, in this order.
  struct GraphKey {
    bool appends = false;
    int decisions = 0, updates = 0;
    bool shares_gpu = false;  // its kernels leave room for those of other learners
    auto operator<=>(const GraphKey&) const = default;
  };
  void Launch(ReplayGraphNodes& replay, GraphKey key, cudaEvent_t batch_ready = nullptr);
  void EnqueueDecisions(ReplayGraphNodes& replay, int count);
  void EnqueueUpdates(ReplayGraphNodes& replay, int count, bool shares_gpu);
  // In these, `from` is read and `to` is written.
  void EnqueueUpdate(ParameterSet& from, ParameterSet& to, const ChainPosition& position);
  void EnqueueForward(ParameterSet& from, const ChainPosition& position);
  void EnqueueTargetActions(ParameterSet& from);
  void EnqueueForwardChosen(ParameterSet& from);
  void EnqueueHeadNorm(ParameterSet& from);
  void EnqueueStatistics(const LossCall& samples, ParameterSet& to, const ChainPosition& position);
  void EnqueueBackward(ParameterSet& from, ParameterSet& to);
  void EnqueueHeadUpdate(OptimizerPass pass, ParameterSet& from, ParameterSet& to,
                         cudaStream_t stream, LaunchOrder order = LaunchOrder::kSerial);
  void EnqueueNormAndOptimizer(ParameterSet& from, ParameterSet& to);
  void EnqueueActing(ParameterSet& set, int count, Torso::Pass pass);
  // Copies the observations to where the kernels read them.
  void StageObservations(std::span<const std::byte> observations, int count);
  bool ReadsHostObservations(int count) const { return count <= 2; }
  void ReadActionValues(int count, std::span<float> q);
  void PutFrames(FramePointers frames, int count);
  bool FeedPrelaunched(FramePointers frames);
  void CancelPrelaunched();
  void EnqueueActionValues(ParameterSet& set, int count);
  void EnqueueMeanWeights(const float* parameters, CudaHeadMeanWeights& mean_weights);

  ParameterSet& current() { return sets_[current_]; }
  std::size_t observation_bytes() const { return batch_layout_.observation_bytes / spec_.batch; }
  Torso::Pass PassOf(PassIndex pass, ParameterSet& set);
  // The pass whose values choose the target's actions.
  PassIndex ChoosingPass() const { return spec_.loss.double_q ? kNext : kTarget; }
  LossCall LossCallOf(ParameterSet& from);
  HeadGradient HeadGradientOf(const ParameterSet& from) const;
  HeadForwardMean MeansOf(const float* hidden, CudaHeadMeanWeights& mean_weights, int batch);
  // A part of the batch in this set.
  template <typename T>
  static const T* Staged(const ParameterSet& from, std::size_t offset) {
    return reinterpret_cast<const T*>(from.batch.data() + offset);
  }

  const LearnerSpec spec_;
  const ParameterLayout layout_;
  const HeadShape head_;
  const OptimizerRules rules_;
  const std::size_t hidden_w_, head_w_, head_b_;  // offsets
  const BatchLayout batch_layout_;
  // Side streams: gradients of convolution weights; statistics; the head's norm; the hidden layer's
  // update; the speculative update of the head.
  Stream main_, side_, statistics_stream_, norm_, dense_, speculative_stream_;
  Event fork_, join_, dense_fork_, dense_done_, begin_done_, speculative_fork_, speculative_done_,
      squares_done_, statistics_fork_, statistics_done_;
  Torso torso_, acting_torso_;

  // The learner's state.
  std::array<ParameterSet, 2> sets_;
  int current_ = 0;  // the set that the next update reads
  DeviceBuffer<float> target_;
  CudaHeadMeanWeights target_mean_weights_;
  DeviceBuffer<UpdateState> update_state_;
  std::int64_t updates_ = 0;

  // Copies on the host, made by the first call of State().
  FloatBuffer host_online_, host_target_, host_first_moment_, host_second_moment_;
  bool host_fresh_ = false;

  // Data of the update in progress.
  PinnedBuffer<std::byte> host_batch_;
  DeviceBuffer<float>
      observations_;  // [s_tm1 and s_t, batch, observation]; only for kernels that read floats
  std::vector<Torso::Activations> activations_;  // [pass]
  mutable DeviceBuffer<float> gradient_;
  DeviceBuffer<float> member_values_;                // [batch, member, action]
  DeviceBuffer<int> target_actions_;                 // [batch, member]
  DeviceBuffer<float> online_parts_, target_parts_;  // [part, batch, member, output]
  DeviceBuffer<float> all_parts_;  // [part, batch, action, member, output]; categorical heads only
  DeviceBuffer<float> online_outputs_, target_outputs_, d_outputs_;  // [batch, member, output]
  DeviceBuffer<MemberLoss> members_;
  DeviceBuffer<float> hidden_parts_;  // [member, batch, hidden unit]
  DeviceBuffer<double> squares_;
  DeviceBuffer<float> quantiles_;  // of categorical heads
  PinnedBuffer<UpdateState> host_update_state_;
  DeviceBuffer<double> td_errors_;
  DeviceBuffer<Uncertainty> uncertainty_;
  PinnedBuffer<double> host_td_errors_;
  PinnedBuffer<Uncertainty> host_uncertainty_;
  std::array<Graph, 2> update_graphs_;                      // [current_]
  std::array<std::map<GraphKey, Graph>, 2> replay_graphs_;  // [current_]; made when first needed
  mutable FloatBuffer host_gradient_;

  // Decisions use these.
  PinnedBuffer<std::byte> host_observations_;
  DeviceBuffer<std::byte> acting_bytes_;
  DeviceBuffer<float> acting_observations_;
  Torso::Activations acting_activations_;
  DeviceBuffer<float> acting_values_;  // [batch, member, action] of categorical heads
  PinnedBuffer<float> q_;              // categorical heads; other heads use the mailbox
  PinnedBuffer<std::uint64_t> mailbox_;
  // [batch]: number of times the GPU has computed a sample's values, and the host has requested
  // them.
  DeviceBuffer<int> decision_counts_;
  std::vector<int> requested_;
  FramePointerTable frame_pointers_;  // made when first needed
  // Whether a prelaunched decision waits for its frames. Whether the decision in progress was
  // prelaunched and has been given its frames (fed), and when. Both can hold: the next decision is
  // prelaunched before the values of this one have arrived.
  bool prelaunched_ = false, fed_ = false;
  std::chrono::steady_clock::time_point fed_at_;
  int backoff_decisions_ = 0;  // decisions until prelaunching is tried again
  static inline std::atomic<int> learners_ = 0;
  // [current_][count]; made when first needed.
  std::array<std::vector<Graph>, 2> acting_graphs_;
};

}  // namespace uper::cuda
