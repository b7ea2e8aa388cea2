#pragma once

#include <vector>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/cpu/cpu_network.h"
#include "uper/nn/cpu/sample_loss.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/learner.h"

namespace uper {

// The learner on the CPU. Results are the same bits for any number of threads. Update and
// ActionValues allocate nothing.
class CpuLearner final : public Learner {
 public:
  // Parameters start as zeros; fill State().online, then CopyTarget(). The pool must outlive the
  // learner. Throws Error(kUsage) for another precision than fp32.
  CpuLearner(const LearnerSpec& spec, ThreadPool& pool);

  const LearnerSpec& spec() const override { return spec_; }
  const ParameterLayout& layout() const override { return network_.layout(); }
  LearnerOutput Update(const LearnerBatch& batch) override;
  std::span<const float> gradient() override;
  void ActionValues(std::span<const std::byte> observations, int count,
                    std::span<float> q) override;
  void MemberOutputs(std::span<const std::byte> observation, std::span<float> outputs) override;
  void CopyTarget() override;
  LearnerState State() override;
  void CommitState(std::int64_t updates) override;

  // Update() adds the times of its parts to this clock from now on; null: to none.
  void Watch(UpdateProfile* clock);

 private:
  // Passes through the network, in the slots that keep their activations.
  enum Slot { kOnline, kTarget, kNext, kSlots };

  EnsembleShape Shape() const;
  void CheckBatch(const LearnerBatch& batch) const;
  void Forward(const LearnerBatch& batch);
  void ChooseTargetActions();
  // member_values_ [batch, member, action] of the observations in a slot.
  void MemberValues(Slot slot, std::span<const float> parameters, const HeadMeanWeights& tables);
  void CategoricalValues(Slot slot, std::span<const float> parameters, int count);
  void ComputeSamples(const LearnerBatch& batch);
  double SampleScale(const LearnerBatch& batch) const;
  void StepOptimizer(double gradient_norm);
  void RefreshOnlineTables();
  void EndOf(UpdatePhase part);

  const LearnerSpec spec_;
  ThreadPool& pool_;
  CpuNetwork network_;

  // The state.
  FloatBuffer online_, target_, first_moment_, second_moment_;
  std::int64_t updates_ = 0;

  // Averages of the heads, for greedy actions.
  HeadMeanWeights online_tables_, target_tables_;
  bool online_tables_fresh_ = false;

  // Of the update under way.
  FloatBuffer gradient_;               // without the head's part until gradient() asks for it
  std::vector<float> online_outputs_;  // [batch, member, output]
  std::vector<float> target_outputs_;
  std::vector<float> d_outputs_;
  std::vector<float> member_values_;  // [batch, member, action]
  std::vector<float> all_outputs_;    // [batch, action, member, output]; categorical heads only
  std::vector<int> taken_actions_;    // [batch]
  std::vector<int> target_actions_;   // [batch, member]
  std::vector<LossScratch> scratch_;  // [thread]
  std::vector<double> losses_;        // [batch]
  std::vector<double> td_errors_;
  std::vector<Uncertainty> uncertainty_;
  UpdateProfile* clock_ = nullptr;  // not owned
};

}  // namespace uper
