#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/cpu/action_groups.h"
#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/network_spec.h"

namespace uper::cpu {

// Mean weights of a head. The head is linear: the mean over outputs (and members) of its results is
// what the mean weights compute. They belong to one set of parameters and are computed again when
// the parameters change.
struct HeadMeanWeights {
  explicit HeadMeanWeights(const NetworkSpec& spec);

  // Mean over outputs: [hidden unit, member, action], one matrix for all members; with separate
  // hidden layers [member, hidden unit, action].
  FloatBuffer member_weights;
  FloatBuffer member_bias;  // [member, action]
  // Mean over outputs and members: [hidden unit (of all members, if separate), action].
  FloatBuffer ensemble_weights;
  FloatBuffer ensemble_bias;  // [action]
};

// The linear head
//
//   z[b, a, k, m] = bias[a, k, m] + sum over h of hidden[b, (k,) h] * w[a, k, h, m],
//
// K members, M outputs; w [action, member, hidden unit, output], bias [action, member, output] or
// one shared number. Reads only the blocks [h, m] of the requested actions. Not
// thread-safe: the functions use the pool themselves and share scratch memory.
class Head {
 public:
  Head(const NetworkSpec& spec, int max_batch, ThreadPool& pool);

  // out [batch, member, output] for one action per sample (actions_per_sample = 1), or for one
  // action per (sample, member) (actions_per_sample = members, actions [batch, member]).
  struct Selection {
    const float* w;
    const float* bias;
    const float* hidden;
    std::span<const int> actions;
    int actions_per_sample;
    float* out;
  };
  // One or two selections as one piece of work for the threads.
  static constexpr int kMaxSelections = 2;
  void Select(std::span<const Selection> selections, int batch);
  // out [batch, action, member, output].
  void All(const float* w, const float* bias, const float* hidden, int batch, float* out);

  void ComputeMeanWeights(const float* w, const float* bias, HeadMeanWeights& means);
  // q [batch, member, action]: the mean over outputs.
  void MemberMeans(const HeadMeanWeights& means, const float* hidden, int batch, float* q);
  // q [batch, action]: the mean over outputs and members.
  void EnsembleMean(const HeadMeanWeights& means, const float* hidden, int batch, float* q);

  // The gradient of Select() with one action per sample, from d_out [batch, member, output]. It
  // comes in stages, so that the gradients of all layers' weights can be computed together.
  // 1. Sorts the samples by action and finds the (sample, member) pairs whose d_out is all zero
  //    (masked).
  void BeginBackward(std::span<const int> actions, const float* d_out, int batch);
  // 2. d_hidden [batch, hidden_total].
  void BackwardHidden(const float* w, const float* d_out, int batch, float* d_hidden);
  // 3. The gradient of weights and biases, as tasks for any thread. A task writes the block of one
  //    (action, member), with zeros where no sample took the action. `db` is null with a shared
  //    bias.
  int weight_tasks() const { return spec_.actions * spec_.members; }
  void BackwardWeights(int task, int thread, const float* hidden, const float* d_out, float* dw,
                       float* db);
  //    Or the optimizer update with that gradient, which is made on the way and never stored.
  //    `head` holds head/w, then head/b (not used when shared); its gradient is ignored.
  void UpdateWeights(int task, int thread, const float* hidden, const float* d_out,
                     const OptimizerUpdate& update, const OptimizerBuffers& head);
  // The sum over all samples of this is the squared norm of what BackwardWeights() writes. It needs
  // no gradient: |sum_i h_i d_i^T|^2 = sum_ij (h_i . h_j) (d_i . d_j), over samples of one action.
  double WeightSquares(int sample, const float* hidden, const float* d_out) const;
  // The gradient of a shared bias, one number.
  float BackwardSharedBias(const float* d_out, int batch) const;

 private:
  // Scratch memory of one thread.
  struct HeadScratch {
    // Offsets of samples: in the hidden layer, in the outputs, in active_.
    std::vector<std::ptrdiff_t> hidden;
    std::vector<std::ptrdiff_t> outputs;
    std::vector<std::ptrdiff_t> active;
    FloatBuffer tile;  // [hidden unit of a tile, output]: of a gradient
    // For UpdateFromOuterProducts(): the factors of each sample that the member learns from.
    std::vector<const float*> rows_of;
    std::vector<const float*> columns_of;
    FloatBuffer columns;  // [sample, column and the first ones again]
  };

  std::ptrdiff_t Block(int action, int member) const;  // of w
  std::ptrdiff_t BiasBlock(int action, int member) const;
  const float* BiasOf(const float* bias, int action, int member, int selection = 0) const;
  void ExpandSharedBias(const float* bias, int selection = 0);
  void SelectBlock(const Selection& s, int selection, int action, int member,
                   HeadScratch& scratch) const;
  void BackwardHiddenBlock(const float* w, const float* d_out, int action, int begin, int end,
                           HeadScratch& scratch, float* d_hidden) const;
  void BackwardHiddenScalar(const float* w, const float* d_out, int action, float* d_hidden) const;
  // Whether the rows of a block fill vectors. UpdateWeights() then computes the gradient in
  // registers.
  bool RowsFillVectors() const;
  void UpdateFromOuterProducts(int member, int learners, HeadScratch& scratch, const float* hidden,
                               const float* d_out, const OptimizerUpdate& update,
                               const OptimizerBuffers& block) const;
  void UpdateInTiles(int member, int learners, HeadScratch& scratch, const float* hidden,
                     const float* d_out, const OptimizerUpdate& update,
                     const OptimizerBuffers& block) const;
  int FindLearners(int action, int member, HeadScratch& scratch) const;
  void WeightRows(int member, int begin, int end, int learners, const HeadScratch& scratch,
                  const float* hidden, const float* d_out, float* dw) const;
  void BiasRow(int member, int learners, const HeadScratch& scratch, const float* d_out,
               float* db) const;
  void FinishMeanWeights(HeadMeanWeights& means) const;

  // Constant after construction.
  NetworkSpec spec_;
  int hidden_;                    // of one member
  int hidden_total_;              // of a sample
  std::ptrdiff_t hidden_stride_;  // from the hidden units of one member to the next; 0 when shared
  ThreadPool& pool_;
  std::vector<std::ptrdiff_t> member_blocks_;   // [member]: in the block of an action
  std::vector<std::ptrdiff_t> member_outputs_;  // [member]: in the outputs of a sample

  std::vector<ActionGroups> groups_;  // [selection]; the first also for the backward pass
  std::vector<int> taken_;            // [sample], of BeginBackward()
  std::vector<HeadScratch> scratch_;  // [thread]
  std::vector<char> active_;          // [sample, member]: d_out is not all zero
  std::vector<float> shared_bias_;    // [selection, output]: the shared number, repeated
};

}  // namespace uper::cpu
