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

namespace uper {

// Forward and backward passes of one network on the CPU. It owns activations and scratch memory for
// batches up to max_batch and no parameters: each function takes the buffer to use, laid out as
// layout() says, so that the online and the target network share one instance. No function
// allocates. All results are the same bits for any number of threads, any instruction set, and for
// a sample alone or in any batch; denormals count as zero throughout.
//
// Activations of a forward pass are kept in a slot until the next one into the same slot. The head
// functions read the hidden layer of a slot. Not thread-safe.
class CpuNetwork {
 public:
  struct Options {
    int max_batch = 32;
    int slots = 2;  // e.g. 0: online network at s_tm1, kept for Backward; 1: passes at s_t
  };

  // Validates the spec. The pool must outlive the network.
  CpuNetwork(const NetworkSpec& spec, const Options& options, ThreadPool& pool);

  const NetworkSpec& spec() const { return spec_; }
  const ParameterLayout& layout() const { return layout_; }

  // Runs torso and hidden layer on `batch` observations [batch, observation] (of spec().input.type
  // and layout, without gaps) and returns the hidden layer [batch, hidden_total].
  std::span<const float> Forward(int slot, std::span<const float> parameters,
                                 std::span<const std::byte> observations, int batch);
  // Several passes, of `batch` observations each, as one piece of work for the threads.
  struct Pass {
    int slot;
    std::span<const float> parameters;
    std::span<const std::byte> observations;
  };
  void Forward(std::span<const Pass> passes, int batch);
  // Of the last Forward() into the slot.
  std::span<const float> hidden(int slot) const;
  int batch(int slot) const { return CheckedSlot(slot).batch; }

  // Forward() and Backward() tell this clock where a part ends; null: none.
  void Watch(UpdateProfile* clock) { clock_ = clock; }

  // out [batch, member, output] of one action a sample; actions [batch].
  void HeadTaken(int slot, std::span<const float> parameters, std::span<const int> actions,
                 std::span<float> out);
  // out [batch, member, output] of one action a (sample, member); actions [batch, member].
  void HeadPerMember(int slot, std::span<const float> parameters, std::span<const int> actions,
                     std::span<float> out);
  // One or two of these, of the same batch, as one piece of work for the threads.
  struct HeadPass {
    int slot;
    std::span<const float> parameters;
    std::span<const int> actions;
    int actions_per_sample;  // 1 or the members
    std::span<float> out;
  };
  void HeadOutputs(std::span<const HeadPass> passes);
  // out [batch, action, member, output].
  void HeadAll(int slot, std::span<const float> parameters, std::span<float> out);

  // The averages that HeadMeans() and HeadMean() read: to be called after every change of the
  // parameters before the next of those.
  void ComputeHeadTables(std::span<const float> parameters, HeadMeanWeights& tables);
  // q [batch, member, action]: mean over outputs.
  void HeadMeans(int slot, const HeadMeanWeights& tables, std::span<float> q);
  // q [batch, action]: mean over outputs and members.
  void HeadMean(int slot, const HeadMeanWeights& tables, std::span<float> q);

  // The gradient of a loss with d_out [batch, member, output] = its derivative by HeadTaken(slot,
  // parameters, actions). Rows of d_out that are all zero (masked members) cost little. The head's
  // gradient is by far the largest part and only ever needed in small pieces, so Backward() writes
  // that of all other parameters (and of a shared output bias) and returns the squared norm of the
  // whole; then
  //   Step() applies it, making the head's part on the way, and
  //   HeadGradient() writes the head's part, for whoever wants to look at it.
  // d_out must be unchanged then. REQUIRES: the slot's last Forward() used the same parameters.
  double Backward(int slot, std::span<const float> parameters, std::span<const int> actions,
                  std::span<const float> d_out, std::span<float> gradient);
  void Step(int slot, std::span<const float> d_out, const OptimizerStep& step,
            const OptimizerBuffers& buffers);
  void HeadGradient(int slot, std::span<const int> actions, std::span<const float> d_out,
                    std::span<float> gradient);

 private:
  // activations[i] is the input of layer i: [batch, size], sizes_[i]; the last one is the hidden
  // layer. Layers are convolutions_ followed by dense_.
  struct Slot {
    int batch = 0;
    std::vector<FloatBuffer> activations;
  };
  // Weights and bias of one layer in the parameter buffer.
  struct LayerOffsets {
    std::size_t w;
    std::size_t b;
  };

  void EndOf(UpdatePhase part) {
    if (clock_ != nullptr) clock_->Lap(part);
  }
  int layers() const { return static_cast<int>(convolutions_.size() + dense_.size()); }
  void AddLayers();
  void AllocateScratch(const Options& options, int threads);
  void CheckPass(const Pass& pass, int batch) const;
  void ForwardPicture(const Pass& pass, int picture);
  void ForwardDense(int index, std::span<const Pass> passes);
  void BackwardDenseInput(int index, const float* parameters, const Slot& slot);
  void BackwardPicture(int picture, const Slot& slot);
  double BackwardAllWeights(const Slot& slot, std::span<const float> d_out,
                            std::span<float> gradient);
  int WeightTasks(int layer) const;
  std::span<const float> BackwardLayerWeights(int layer, int task, const Slot& slot,
                                              float* gradient);
  const Slot& CheckedSlot(int slot) const;
  void CheckSizes(int slot, std::span<const float> parameters, std::size_t out,
                  std::size_t outputs_per_sample) const;

  // Constant after construction.
  NetworkSpec spec_;
  ParameterLayout layout_;
  ThreadPool& pool_;
  int max_batch_;
  std::vector<Convolution> convolutions_;
  std::vector<Dense> dense_;           // the hidden layer last
  std::vector<LayerOffsets> offsets_;  // [layer]
  LayerOffsets head_offsets_{};
  std::vector<int> sizes_;  // [layer + 1]: floats a sample

  Head head_;
  std::vector<Slot> slots_;
  std::vector<FloatBuffer> d_activations_;       // [layer + 1]; empty for the observation
  std::vector<FloatBuffer> transposed_weights_;  // [convolution]; empty for the first
  std::vector<FloatBuffer> thread_scratch_;      // [thread]
  std::vector<double> squares_;                  // [task of BackwardAllWeights()]
  UpdateProfile* clock_ = nullptr;               // not owned
};

}  // namespace uper
