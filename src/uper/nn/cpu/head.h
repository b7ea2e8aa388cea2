#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/cpu/action_groups.h"
#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/float_buffer.h"
#include "uper/nn/network_spec.h"

namespace uper {

// Averages of a head, which is linear: the mean over outputs (and members) of what it computes is
// what its averaged weights compute. Belongs to one set of parameters and is recomputed when they
// change.
struct HeadMeanWeights {
  explicit HeadMeanWeights(const NetworkSpec& spec);

  // Mean over outputs: [hidden unit, member, action], one matrix for all members; with separate
  // hidden units [member, hidden unit, action].
  FloatBuffer member_weights;
  FloatBuffer member_bias;  // [member, action]
  FloatBuffer
      mean_weights;       // [hidden unit (of all members, if separate), action], over members too
  FloatBuffer mean_bias;  // [action]
};

// The linear head
//
//   z[b, a, k, m] = bias[a, k, m] + sum over h of hidden[b, (k,) h] * w[a, k, h, m],
//
// K members, M outputs; w [action, member, hidden unit, output], bias [action, member, output] or
// one shared number. Only the blocks [h, m] of asked-for actions are touched. Not thread-safe: the
// functions use the pool themselves and share tables of indices.
class Head {
 public:
  Head(const NetworkSpec& spec, int max_batch, ThreadPool& pool);

  // out [batch, member, output] for one action a sample (actions_per_sample = 1), or for one action
  // a (sample, member) (actions_per_sample = members, actions [batch, member]).
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

  void ComputeTables(const float* w, const float* bias, HeadMeanWeights& tables);
  // q [batch, member, action]: the mean over outputs.
  void Means(const HeadMeanWeights& tables, const float* hidden, int batch, float* q);
  // q [batch, action]: the mean over outputs and members.
  void Mean(const HeadMeanWeights& tables, const float* hidden, int batch, float* q);

  // The gradient of Select() with one action a sample, from d_out [batch, member, output], in
  // steps so that the weights' part can run beside that of other layers.
  // 1. Sorts the samples and finds the (sample, member) pairs whose d_out is all zero (masked).
  void BeginBackward(std::span<const int> actions, const float* d_out, int batch);
  // 2. d_hidden [batch, hidden_total].
  void BackwardHidden(const float* w, const float* d_out, int batch, float* d_hidden);
  // 3. The weights' and biases' gradient, in pieces for any thread: block by block of an (action,
  // member), zero where nothing was taken. `db` is null with a shared bias.
  int weight_tasks() const { return spec_.actions * spec_.members; }
  void BackwardWeights(int task, int thread, const float* hidden, const float* d_out, float* dw,
                       float* db);
  // or the optimiser's step with that gradient, which is made on the way and never stored;
  // `head` holds head/w, then head/b (not used when shared); its gradient is ignored.
  void StepWeights(int task, int thread, const float* hidden, const float* d_out,
                   const OptimizerStep& step, const OptimizerBuffers& head);
  // The squared norm of what BackwardWeights() writes is the sum of these over all samples, and
  // needs no gradient either: |sum_i h_i d_i^T|^2 = sum_ij (h_i . h_j) (d_i . d_j), over samples
  // of one action.
  double WeightSquares(int sample, const float* hidden, const float* d_out) const;
  // With a shared bias: its gradient, one number.
  float BackwardSharedBias(const float* d_out, int batch) const;

 private:
  // Scratch of one thread: offsets of samples, in the hidden layer, in the outputs, in active_.
  struct Offsets {
    std::vector<std::ptrdiff_t> a;
    std::vector<std::ptrdiff_t> b;
    std::vector<std::ptrdiff_t> active;
    FloatBuffer tile;  // [hidden unit of a tile, output]: of a gradient
    // Of StepOuter(): the factors of the learners' outer products.
    std::vector<const float*> rows_of;
    std::vector<const float*> columns_of;
    FloatBuffer columns;  // [learner, column and the first ones again]
  };

  std::ptrdiff_t Block(int action, int member) const;  // of w
  std::ptrdiff_t BiasBlock(int action, int member) const;
  const float* BiasOf(const float* bias, int action, int member, int selection = 0) const;
  void ExpandSharedBias(const float* bias, int selection = 0);
  void SelectBlock(const Selection& s, int selection, int action, int member,
                   Offsets& offsets) const;
  void BackwardHiddenBlock(const float* w, const float* d_out, int action, int begin, int end,
                           Offsets& offsets, float* d_hidden) const;
  void BackwardHiddenScalar(const float* w, const float* d_out, int action, float* d_hidden) const;
  // Whether StepWeights() can make the gradient in registers: the block's rows fill vectors.
  bool RowsFillVectors() const;
  void StepOuter(int member, int learners, Offsets& offsets, const float* hidden,
                 const float* d_out, const OptimizerStep& step,
                 const OptimizerBuffers& block) const;
  void StepTiles(int member, int learners, Offsets& offsets, const float* hidden,
                 const float* d_out, const OptimizerStep& step,
                 const OptimizerBuffers& block) const;
  int FindLearners(int action, int member, Offsets& offsets) const;
  void WeightRows(int member, int begin, int end, int learners, const Offsets& offsets,
                  const float* hidden, const float* d_out, float* dw) const;
  void BiasRow(int member, int learners, const Offsets& offsets, const float* d_out,
               float* db) const;
  void FinishTables(HeadMeanWeights& tables) const;

  // Constant after construction.
  NetworkSpec spec_;
  int hidden_;                  // of one member
  int hidden_total_;            // of a sample
  std::ptrdiff_t hidden_step_;  // from one member's hidden units to the next's; 0 when shared
  ThreadPool& pool_;
  std::vector<std::ptrdiff_t> member_blocks_;   // [member]: in the block of an action
  std::vector<std::ptrdiff_t> member_outputs_;  // [member]: in a sample's outputs

  std::vector<ActionGroups> groups_;  // [selection]; the first also for the backward pass
  std::vector<int> taken_;            // [sample], of BeginBackward()
  std::vector<Offsets> offsets_;      // [thread]
  std::vector<char> active_;          // [sample, member]: d_out is not all zero
  std::vector<float> shared_bias_;    // [selection, output]: the shared number, repeated
};

}  // namespace uper
