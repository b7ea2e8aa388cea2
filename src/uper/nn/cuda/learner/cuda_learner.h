#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <map>
#include <vector>

#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/learner/batch_source.h"
#include "uper/nn/cuda/learner/torso.h"
#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/cuda/observations/frame_pointer_table.h"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/runtime/device_buffer.h"
#include "uper/nn/cuda/runtime/graph.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/gpu.h"

namespace uper {

// Averages of a head, in the GPU's memory.
struct CudaHeadTables {
  explicit CudaHeadTables(const NetworkSpec& spec);
  HeadTablePointers pointers();

  DeviceBuffer<float> member_weights, member_bias, mean_weights;
  DeviceBuffer<unsigned> members_done;
};

// Everything that an update changes, and the batch that it learns from. There are two: an update
// reads one and writes the parameters of the other, while the batch of the next may arrive there.
struct ParameterSet {
  ParameterSet(const NetworkSpec& spec, std::size_t size, std::size_t batch_bytes);
  ParameterBlock block(std::size_t offset);

  DeviceBuffer<float> online, first_moment, second_moment;
  CudaHeadTables tables;  // of online
  DeviceBuffer<std::byte> batch;
};

// Where the parts of a batch lie in one block of memory, which is copied to the GPU at once.
struct BatchLayout {
  explicit BatchLayout(const LearnerSpec& spec);

  std::size_t observation_bytes;  // of all s_tm1; s_t follows
  std::size_t masks, a_tm1, r_t, discount_t, weights;
  std::size_t size;
};

// The learner on the GPU, in plain fp32 but for the torso's products (LearnerSpec::precision). One
// update is one graph: forward passes, targets, losses, backward pass, norm, optimiser and
// statistics, without a word from the host and without allocation. All sums have a fixed order. The
// stored gradient covers everything but the head's weights, whose gradient only ever exists in
// registers, unless gradient() asks for it. The head's optimiser, which memory limits, runs beside
// the torso's backward pass, which arithmetic limits: hence the two sets of parameters.
class CudaLearner final : public Learner {
 public:
  // Parameters start as zeros. Throws Error(kResources) when the GPU's memory does not suffice.
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

  // For a source of batches on the GPU; there is one for the learner's life. Everything it enqueues
  // is ordered on stream(), which is asked for each time.
  cudaStream_t stream() {
    CancelPrepared();
    return main_;
  }
  // Updates from the source's batches, in one graph. Returns at once; whether they were finite is
  // for the source to find out.
  static constexpr int kMaxUpdatesPerCall = 8;
  // `grows`: the source's growth comes first.
  void QueueUpdates(BatchSource& source, int count, bool grows);
  BatchPointers next_batch() { return BatchOf(current()); }  // where the first one belongs
  // As ActionValues(), of observations whose planes [count, plane] are in the GPU's or in pinned
  // memory (nullptr: zeros), in two steps: more may be enqueued between them, for which the second
  // does not wait.
  using Planes = std::span<const std::byte* const>;
  void BeginDecisions(BatchSource& source, Planes planes, int count);
  void AwaitActionValues(int count, std::span<float> q);
  // Starts the kernels of the next decision, if that will be one, before its planes are known: they
  // wait for BeginDecisions() on the GPU. If anything else is asked of the learner before, the
  // decision is given up. Nothing depends on it but time. REQUIRES: MayPrepareActing().
  void PrelaunchDecision(BatchSource& source, bool grows);
  // Whether it can be done, and is likely to pay.
  bool MayPrepareActing() const;
  // BeginDecisions() and QueueUpdates() in one graph. The first batch is the source's concern: it
  // is at next_batch() after `batch_ready`, always the same event, which was recorded before the
  // call.
  void ActAndQueueUpdates(BatchSource& source, Planes planes, int decisions, int updates,
                          cudaEvent_t batch_ready);
  // Whether there are other learners in this process. Kernels then leave room for theirs, and none
  // waits for the host. Results are the same.
  static bool crowded() { return learners_ > 1; }
  // Whether everything has ended. Throws if something went wrong on the GPU.
  bool IsDone() const { return main_.IsDone(); }
  // Waits for everything, whatever became of it.
  void AwaitEnd() noexcept { cudaStreamSynchronize(main_); }

 private:
  // Activations of the passes of an update.
  enum Slot { kOnline, kTarget, kNext, kSlots };

  void CheckBatch(const LearnerBatch& batch) const;
  void Stage(const LearnerBatch& batch);
  BatchPointers BatchOf(ParameterSet& set);
  // What the graphs consist of.
  // `from` and `to`: the set that is read and the other one, which is written.
  // One of the updates of a graph. `source`: uses what it finds, and makes the next one's batch;
  // may be null.
  struct InRow {
    BatchSource* source = nullptr;
    bool first = true, last = true;  // of the graph's updates
    bool crowded = false;
  };
  // What a graph does for a source, in this order.
  struct SourceWork {
    bool grows = false;
    int decisions = 0, updates = 0;
    bool crowded = false;  // its kernels leave room for those of other learners
    auto operator<=>(const SourceWork&) const = default;
  };
  void Launch(BatchSource& source, SourceWork work, cudaEvent_t batch_ready = nullptr);
  void EnqueueDecisions(BatchSource& source, int count);
  void EnqueueUpdates(BatchSource& source, int count, bool crowded);
  void EnqueueUpdate(ParameterSet& from, ParameterSet& to, const InRow& row);
  void EnqueueForward(ParameterSet& from, const InRow& row);
  void EnqueueTargetActions(ParameterSet& from);
  void EnqueueSelections(ParameterSet& from);
  void EnqueueHeadNorm(ParameterSet& from);
  void EnqueueFindings(const SampleCall& samples, ParameterSet& to, const InRow& row);
  void EnqueueBackward(ParameterSet& from, ParameterSet& to);
  void EnqueueHeadStep(StepKind kind, ParameterSet& from, ParameterSet& to, cudaStream_t stream,
                       Follow follow = Follow::kAfter);
  void EnqueueNormAndOptimizer(ParameterSet& from, ParameterSet& to);
  void EnqueueActing(ParameterSet& set, int count, Torso::Pass pass);
  // Brings the observations to where the kernels read them.
  void StageObservations(std::span<const std::byte> observations, int count);
  bool ReadsHostObservations(int count) const { return count <= 2; }
  void TakeActionValues(int count, std::span<float> q);
  void PutPlanes(Planes planes, int count);
  bool GivePrepared(Planes planes);
  void CancelPrepared();
  void EnqueueActionValues(ParameterSet& set, int count);
  void EnqueueTables(const float* parameters, CudaHeadTables& tables);

  ParameterSet& current() { return sets_[current_]; }
  std::size_t observation_bytes() const { return batch_layout_.observation_bytes / spec_.batch; }
  Torso::Pass PassOf(Slot slot, ParameterSet& set);
  // Whose values choose the target's actions.
  Slot ChoosingSlot() const { return spec_.loss.double_q ? kNext : kTarget; }
  SampleCall Samples(ParameterSet& from);
  HeadGradient HeadGradientOf(const ParameterSet& from) const;
  HeadMeans MeansOf(const float* hidden, CudaHeadTables& tables, int batch);
  // A part of the batch of an update from that set.
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
  // Beside the main stream: weights of convolutions, what samples tell; the head's norm, the hidden
  // layer's step, the head's.
  Stream main_, side_, findings_, norm_, dense_, ahead_;
  Event fork_, join_, dense_fork_, dense_done_, begin_done_, ahead_fork_, ahead_done_,
      squares_done_, findings_fork_, findings_done_;
  Torso torso_, acting_torso_;

  // The state.
  std::array<ParameterSet, 2> sets_;
  int current_ = 0;  // the set to read
  DeviceBuffer<float> target_;
  CudaHeadTables target_tables_;
  DeviceBuffer<StepState> step_;
  std::int64_t updates_ = 0;

  // Copies on the host, made when State() is first called.
  FloatBuffer host_online_, host_target_, host_first_moment_, host_second_moment_;
  bool host_fresh_ = false;

  // Of the update under way.
  PinnedBuffer<std::byte> host_batch_;
  DeviceBuffer<float> observations_;  // [s_tm1 and s_t, batch, observation], if they are read
  std::vector<Torso::Activations> activations_;  // [slot]
  mutable DeviceBuffer<float> gradient_;
  DeviceBuffer<float> member_values_;                // [batch, member, action]
  DeviceBuffer<int> target_actions_;                 // [batch, member]
  DeviceBuffer<float> online_parts_, target_parts_;  // [part, batch, member, output]
  DeviceBuffer<float> all_parts_;  // [part, batch, action, member, output]; categorical heads only
  DeviceBuffer<float> online_outputs_, target_outputs_, d_outputs_;  // [batch, member, output]
  DeviceBuffer<MemberFindings> members_;
  DeviceBuffer<float> hidden_parts_;  // [member, batch, hidden unit]
  DeviceBuffer<double> squares_;
  DeviceBuffer<float> quantiles_;  // of categorical heads
  PinnedBuffer<StepState> host_step_;
  DeviceBuffer<double> td_errors_;
  DeviceBuffer<Uncertainty> uncertainty_;
  PinnedBuffer<double> host_td_errors_;
  PinnedBuffer<Uncertainty> host_uncertainty_;
  std::array<Graph, 2> update_graphs_;                        // [current_]
  std::array<std::map<SourceWork, Graph>, 2> source_graphs_;  // [current_]; made when first needed
  mutable FloatBuffer host_gradient_;

  // Of acting.
  PinnedBuffer<std::byte> host_observations_;
  DeviceBuffer<std::byte> acting_bytes_;
  DeviceBuffer<float> acting_observations_;
  Torso::Activations acting_activations_;
  DeviceBuffer<float> acting_values_;  // [batch, member, action] of categorical heads
  PinnedBuffer<float> q_;              // of categorical heads; others show their values
  PinnedBuffer<std::uint64_t> shown_values_;
  // [batch]: how often a sample's values were computed by the GPU, and asked for.
  DeviceBuffer<int> acting_counts_;
  std::vector<int> asked_counts_;
  PlaneTable planes_;  // made when first needed
  // Of a decision that was prepared: it waits for its planes; it has got them, and when.
  bool prepared_ = false, given_ = false;
  std::chrono::steady_clock::time_point given_at_;
  int unprepared_ = 0;  // decisions that are not to be prepared
  static inline std::atomic<int> learners_ = 0;
  // [current_][count]; made when first needed.
  std::array<std::vector<Graph>, 2> acting_graphs_;
};

}  // namespace uper
