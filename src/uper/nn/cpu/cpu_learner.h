#pragma once

#include <vector>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/cpu/cpu_network.h"
#include "uper/nn/cpu/sample_loss.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/learner.h"

namespace uper::cpu {

// The learner on the CPU (MakeCpuLearner() makes one). Results are the same bits for any number of
// threads. Update() and ActionValues() allocate nothing.
class CpuLearner final : public Learner {
 public:
  // Parameters start as zeros: fill State().online, then call CommitState() and CopyTarget(). The
  // pool must outlive the learner. Throws Error(kUsage) for a precision other than fp32.
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

  // From now on Update() adds the time of its phases to this profile; null: to none.
  void SetProfile(UpdateProfile* profile);

 private:
  // The passes through the network: online at s_tm1, target at s_t, online at s_t.
  enum Pass { kOnline, kTarget, kNext, kPasses };

  EnsembleShape Shape() const;
  void CheckBatch(const LearnerBatch& batch) const;
  void Forward(const LearnerBatch& batch);
  void ChooseTargetActions();
  // Fills member_values_ [batch, member, action] from the hidden layer of a pass.
  void MemberValues(Pass pass, std::span<const float> parameters,
                    const HeadMeanWeights& mean_weights);
  void CategoricalValues(Pass pass, std::span<const float> parameters, int count);
  void ComputeSamples(const LearnerBatch& batch);
  double SampleScale(const LearnerBatch& batch) const;
  void UpdateParameters(double gradient_norm);
  void RefreshOnlineMeanWeights();
  void EndPhase(UpdatePhase phase);

  const LearnerSpec spec_;
  ThreadPool& pool_;
  CpuNetwork network_;

  // The state.
  FloatBuffer online_, target_, first_moment_, second_moment_;
  std::int64_t updates_ = 0;

  // Mean weights of the heads, for greedy actions.
  HeadMeanWeights online_mean_weights_, target_mean_weights_;
  bool online_mean_weights_fresh_ = false;

  // Intermediate results of an update.
  FloatBuffer gradient_;               // without the part of the head until gradient() is called
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
  UpdateProfile* profile_ = nullptr;  // not owned
};

}  // namespace uper::cpu
