#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/cpu/head.h"
#include "uper/nn/cpu/kernels/convolution.h"
#include "uper/nn/cpu/kernels/dense.h"
#include "uper/nn/cpu/update_profile.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/network_spec.h"
#include "uper/nn/parameter_layout.h"

namespace uper::cpu {

// Forward and backward passes of one network on the CPU. It owns activations and scratch memory for
// batches up to max_batch, and no parameters. Each function takes the buffer to use, laid out as
// layout() says, so that the online and the target network share one instance. No function
// allocates. Results are the same bits for any number of threads, for any instruction set, and for
// a sample alone or in any batch. Denormals count as zero throughout.
//
// A pass has a number, below Options::passes. Its activations are kept until the next forward pass
// with the same number, and the head functions read its hidden layer. Not thread-safe.
class CpuNetwork {
 public:
  struct Options {
    int max_batch = 32;
    int passes = 2;  // e.g. 0: online network at s_tm1, kept for Backward(); 1: passes at s_t
  };

  // Validates the spec. The pool must outlive the network.
  CpuNetwork(const NetworkSpec& spec, const Options& options, ThreadPool& pool);

  const NetworkSpec& spec() const { return spec_; }
  const ParameterLayout& layout() const { return layout_; }

  // Runs torso and hidden layer on `batch` observations [batch, observation] (of spec().input.type
  // and layout, without gaps) and returns the hidden layer [batch, hidden_total].
  std::span<const float> Forward(int pass, std::span<const float> parameters,
                                 std::span<const std::byte> observations, int batch);
  // Several passes, of `batch` observations each, as one piece of work for the threads.
  struct ForwardCall {
    int pass;
    std::span<const float> parameters;
    std::span<const std::byte> observations;
  };
  void Forward(std::span<const ForwardCall> calls, int batch);
  // The hidden layer and the batch of the last Forward() with this pass.
  std::span<const float> hidden(int pass) const;
  int batch(int pass) const { return CheckedPass(pass).batch; }

  // Forward() and Backward() add the time of their phases to this profile; null: to none.
  void SetProfile(UpdateProfile* profile) { profile_ = profile; }

  // out [batch, member, output] of one action per sample; actions [batch].
  void HeadTaken(int pass, std::span<const float> parameters, std::span<const int> actions,
                 std::span<float> out);
  // out [batch, member, output] of one action per (sample, member); actions [batch, member].
  void HeadPerMember(int pass, std::span<const float> parameters, std::span<const int> actions,
                     std::span<float> out);
  // One or two of these, of the same batch, as one piece of work for the threads.
  struct HeadCall {
    int pass;
    std::span<const float> parameters;
    std::span<const int> actions;
    int actions_per_sample;  // 1 or the members
    std::span<float> out;
  };
  void HeadOutputs(std::span<const HeadCall> calls);
  // out [batch, action, member, output].
  void HeadAll(int pass, std::span<const float> parameters, std::span<float> out);

  // Fills the mean weights that the next two functions read. Call it after the parameters change
  // and before the next of those.
  void ComputeHeadMeanWeights(std::span<const float> parameters, HeadMeanWeights& mean_weights);
  // q [batch, member, action]: mean over outputs.
  void HeadMemberMeans(int pass, const HeadMeanWeights& mean_weights, std::span<float> q);
  // q [batch, action]: mean over outputs and members.
  void HeadEnsembleMean(int pass, const HeadMeanWeights& mean_weights, std::span<float> q);

  // The gradient of a loss whose derivative with respect to HeadTaken(pass, parameters, actions) is
  // d_out [batch, member, output]. Rows of d_out that are all zero (masked members) cost little.
  //
  // The gradient of the head is by far the largest and is needed only in small pieces. Backward()
  // therefore writes the gradient of all other parameters, and of a shared output bias. It returns
  // the squared norm of the whole gradient. Afterwards
  //   Update() applies the gradient and computes the head's part on the way, and
  //   HeadGradient() writes the part of the head, for inspection.
  // Both need the d_out that Backward() got. REQUIRES: the last Forward() of this pass used the
  // same parameters.
  double Backward(int pass, std::span<const float> parameters, std::span<const int> actions,
                  std::span<const float> d_out, std::span<float> gradient);
  void Update(int pass, std::span<const float> d_out, const OptimizerUpdate& update,
              const OptimizerBuffers& buffers);
  void HeadGradient(int pass, std::span<const int> actions, std::span<const float> d_out,
                    std::span<float> gradient);

 private:
  // The results of one forward pass. activations[i] is the input of torso layer i [batch, size],
  // with sizes_[i]; the last one is the hidden layer.
  struct Pass {
    int batch = 0;
    std::vector<FloatBuffer> activations;
  };

  void EndPhase(UpdatePhase phase) {
    if (profile_ != nullptr) profile_->Lap(phase);
  }
  int layers() const { return static_cast<int>(layout_.torso().size()); }
  int convolutions() const { return static_cast<int>(convolutions_.size()); }
  const LayerSpec& layer(int index) const { return layout_.torso()[index]; }
  void AddLayers();
  void AllocateScratch(const Options& options, int threads);
  void CheckCall(const ForwardCall& call, int batch) const;
  void ForwardConvolutions(const ForwardCall& call, int sample);
  void ForwardDense(int index, std::span<const ForwardCall> calls);
  void BackwardInputs(const float* parameters, const Pass& pass);
  void BackwardDenseInput(int index, const float* parameters, const Pass& pass);
  void BackwardConvolutionInputs(int sample, const Pass& pass);
  double BackwardAllWeights(const Pass& pass, std::span<const float> d_out,
                            std::span<float> gradient);
  int WeightTasks(int index) const;
  std::span<const float> BackwardLayerWeights(int index, int task, const Pass& pass,
                                              float* gradient);
  const Pass& CheckedPass(int pass) const;
  void CheckSizes(int pass, std::span<const float> parameters, std::size_t out,
                  std::size_t outputs_per_sample) const;

  // Constant after construction.
  NetworkSpec spec_;
  ParameterLayout layout_;
  ThreadPool& pool_;
  int max_batch_;
  // The layers of layout_.torso(): convolutions_, then dense_ with the hidden layer last.
  std::vector<Convolution> convolutions_;
  std::vector<Dense> dense_;
  std::vector<int> sizes_;  // [layer + 1]: floats per sample

  Head head_;
  std::vector<Pass> passes_;
  std::vector<FloatBuffer> d_activations_;       // [layer + 1]; empty for the observation
  std::vector<FloatBuffer> transposed_weights_;  // [convolution]; empty for the first
  std::vector<FloatBuffer> thread_scratch_;      // [thread]
  std::vector<double> squares_;                  // [task of BackwardAllWeights()]
  UpdateProfile* profile_ = nullptr;             // not owned
};

}  // namespace uper::cpu
