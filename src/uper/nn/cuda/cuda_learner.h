#pragma once

#include <cstddef>
#include <vector>

#include "uper/nn/cuda/device_buffer.h"
#include "uper/nn/cuda/graph.h"
#include "uper/nn/cuda/head_kernels.h"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/sample_kernels.h"
#include "uper/nn/cuda/torso.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/gpu.h"

namespace uper {

// Averages of a head, in the GPU's memory.
struct CudaHeadTables {
  explicit CudaHeadTables(const NetworkSpec& spec);
  HeadTablePointers pointers();

  DeviceBuffer<float> member_weights, member_bias, mean_weights, mean_bias;
};

// Where the parts of a batch lie in one block of memory, which is copied to the GPU at once.
struct BatchLayout {
  explicit BatchLayout(const LearnerSpec& spec);

  std::size_t observation_bytes;  // of all s_tm1; s_t follows
  std::size_t masks, a_tm1, r_t, discount_t, weights;
  std::size_t size;
};

// The learner on the GPU, in plain fp32. One update is one graph: forward passes, targets, losses,
// backward pass, norm, optimiser and statistics, without a word from the host and without
// allocation. All sums have a fixed order. The stored gradient covers everything but the head's
// weights, whose gradient only ever exists in registers, unless gradient() asks for it.
class CudaLearner final : public GpuLearner {
 public:
  // Parameters start as zeros. Throws Error(kResources) when the GPU's memory does not suffice.
  explicit CudaLearner(const LearnerSpec& spec);
  ~CudaLearner() override;

  const LearnerSpec& spec() const override { return spec_; }
  const ParameterLayout& layout() const override { return layout_; }
  LearnerOutput Update(const LearnerBatch& batch) override;
  void BeginUpdate(const LearnerBatch& batch) override;
  LearnerOutput FinishUpdate() override;
  LearnerOutput UpdateAgain() override;
  std::span<const float> gradient() const override;
  void ActionValues(std::span<const std::byte> observations, int count,
                    std::span<float> q) override;
  void CopyTarget() override;
  LearnerState State() override;
  void SetUpdated(std::int64_t updates) override;
  std::int64_t updates() override { return updates_; }

 private:
  // Activations of the passes of an update.
  enum Slot { kOnline, kTarget, kNext, kSlots };

  void CheckBatch(const LearnerBatch& batch) const;
  void Stage(const LearnerBatch& batch);
  // What the graphs consist of.
  void EnqueueUpdate();
  void EnqueueForward();
  void EnqueueTargetActions();
  void EnqueueSelections();
  void EnqueueStatistics();
  void EnqueueNormAndOptimizer();
  void EnqueueActing(int count);
  void EnqueueActionValues(int count);
  void EnqueueTables(const float* parameters, CudaHeadTables& tables);

  Torso::Pass PassOf(Slot slot);
  SampleCall Samples() const;
  HeadGradient HeadGradientOf() const;
  StoredGradient Stored() const;
  HeadMeans MeansOf(const float* hidden, CudaHeadTables& tables, int batch);
  template <typename T>
  const T* Staged(std::size_t offset) const {
    return reinterpret_cast<const T*>(batch_.data() + offset);
  }

  const LearnerSpec spec_;
  const ParameterLayout layout_;
  const HeadShape head_;
  const OptimizerRules rules_;
  const std::size_t head_w_, head_b_;  // offsets
  Stream main_, side_, third_;
  Event fork_, join_, squares_done_, step_done_, third_done_;
  Torso torso_, acting_torso_;

  // The state.
  DeviceBuffer<float> online_, target_, first_moment_, second_moment_;
  DeviceBuffer<StepState> step_;
  CudaHeadTables online_tables_, target_tables_;
  std::int64_t updates_ = 0;

  // Copies on the host, made when State() is first called.
  FloatBuffer host_online_, host_target_, host_first_moment_, host_second_moment_;
  bool host_fresh_ = false;

  // Of the update under way.
  const BatchLayout batch_layout_;
  PinnedBuffer<std::byte> host_batch_;
  DeviceBuffer<std::byte> batch_;
  DeviceBuffer<float> observations_;             // [s_tm1 and s_t, batch, observation]
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
  DeviceBuffer<double> td_errors_;
  DeviceBuffer<Uncertainty> uncertainty_;
  PinnedBuffer<StepState> host_step_;
  PinnedBuffer<double> host_td_errors_;
  PinnedBuffer<Uncertainty> host_uncertainty_;
  Graph update_graph_;
  bool begun_ = false;
  mutable FloatBuffer host_gradient_;

  // Of acting.
  PinnedBuffer<std::byte> host_observations_;
  DeviceBuffer<std::byte> acting_bytes_;
  DeviceBuffer<float> acting_observations_;
  Torso::Activations acting_activations_;
  DeviceBuffer<float> acting_values_;  // [batch, member, action] of categorical heads
  DeviceBuffer<float> q_;
  PinnedBuffer<float> host_q_;
  std::vector<Graph> acting_graphs_;  // [count]; made when first needed
};

}  // namespace uper
