#include "uper/nn/cpu/head.h"

#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cpu/kernels/dot_gemm.h"
#include "uper/nn/cpu/kernels/elementwise.h"
#include "uper/nn/cpu/kernels/gemm.h"

namespace uper::cpu {
namespace {

constexpr int kTileRows = 64;    // hidden units in a tile of UpdateInTiles()
constexpr int kHiddenRows = 32;  // hidden units in one task of BackwardHidden
constexpr int kMeanSamples = 8;  // samples in one task of MemberMeans()
constexpr int kLanes = 16;       // of a vector, at most
// With fewer multiply-adds than this, waking another thread costs more than it saves.
constexpr double kWorthThreads = 1 << 18;

std::ptrdiff_t Wide(int value) { return value; }

// A range of the parameters and of the optimizer state. The caller sets the gradient.
OptimizerBuffers Range(const OptimizerBuffers& all, std::size_t begin, std::size_t count) {
  return {.parameters = all.parameters.subspan(begin, count),
          .gradient = {},
          .m = all.m.subspan(begin, count),
          .v = all.v.subspan(begin, count)};
}

// Calls task(index, thread) for all indices, on the pool if there is enough work, else on the
// calling thread.
template <typename Task>
void ForEachTask(ThreadPool& pool, int count, double multiply_adds, const Task& task) {
  if (multiply_adds >= kWorthThreads) return pool.ParallelTasks(count, task);
  for (int index = 0; index < count; ++index) task(index, /*thread=*/0);
}

}  // namespace

HeadMeanWeights::HeadMeanWeights(const NetworkSpec& spec)
    : member_weights(std::size_t{1} * spec.members * spec.hidden_units * spec.actions),
      member_bias(std::size_t{1} * spec.members * spec.actions),
      ensemble_weights(std::size_t{1} * spec.hidden_total() * spec.actions),
      ensemble_bias(spec.actions) {}

Head::Head(const NetworkSpec& spec, int max_batch, ThreadPool& pool)
    : spec_(spec),
      hidden_(spec.hidden_units),
      hidden_total_(spec.hidden_total()),
      hidden_stride_(spec.separate_hidden ? spec.hidden_units : 0),
      pool_(pool),
      groups_(kMaxSelections, ActionGroups(spec.actions, spec.members, max_batch)),
      taken_(max_batch),
      scratch_(pool.threads()),
      active_(std::size_t{1} * max_batch * spec.members),
      shared_bias_(spec.shared_output_bias ? kMaxSelections * spec.outputs : 0) {
  for (int k = 0; k < spec.members; ++k) {
    member_blocks_.push_back(Block(0, k));
    member_outputs_.push_back(Wide(k) * spec.outputs);
  }
  for (HeadScratch& scratch : scratch_) {
    scratch.hidden.resize(max_batch);
    scratch.outputs.resize(max_batch);
    scratch.active.resize(max_batch);
    scratch.tile = FloatBuffer(std::size_t{kTileRows} * spec.outputs);
    scratch.rows_of.resize(max_batch);
    scratch.columns_of.resize(max_batch);
    const int columns = std::max(spec.hidden_units, spec.outputs) + OuterProducts::kLeastColumns;
    scratch.columns = FloatBuffer(std::size_t{1} * max_batch * columns);
  }
}

std::ptrdiff_t Head::Block(int action, int member) const {
  return (Wide(action) * spec_.members + member) * hidden_ * spec_.outputs;
}

std::ptrdiff_t Head::BiasBlock(int action, int member) const {
  return (Wide(action) * spec_.members + member) * spec_.outputs;
}

const float* Head::BiasOf(const float* bias, int action, int member, int selection) const {
  return spec_.shared_output_bias ? shared_bias_.data() + Wide(selection) * spec_.outputs
                                  : bias + BiasBlock(action, member);
}

void Head::ExpandSharedBias(const float* bias, int selection) {
  if (!spec_.shared_output_bias) return;
  std::fill_n(shared_bias_.begin() + Wide(selection) * spec_.outputs, spec_.outputs, *bias);
}

void Head::Select(std::span<const Selection> selections, int batch) {
  const int members = spec_.members;
  const int count = static_cast<int>(selections.size());
  UPER_CHECK(count <= kMaxSelections, "too many selections");
  for (int i = 0; i < count; ++i) {
    const Selection& s = selections[i];
    UPER_CHECK(s.actions_per_sample == 1 || s.actions_per_sample == members,
               "one action per sample, or one per sample and member");
    groups_[i].Build(s.actions, batch, s.actions_per_sample);
    ExpandSharedBias(s.bias, i);
  }
  const double work = 1.0 * count * batch * hidden_ * spec_.member_outputs();
  // Selections change fastest, so that a thread gets the same actions as in the other functions.
  ForEachTask(pool_, count * spec_.actions * members, work, [&](int task, int thread) {
    const int selection = task % count;
    const int block = task / count;
    SelectBlock(selections[selection], selection, block / members, block % members,
                scratch_[thread]);
  });
}

void Head::SelectBlock(const Selection& s, int selection, int action, int member,
                       HeadScratch& scratch) const {
  const int list = s.actions_per_sample == 1 ? 0 : member;
  const std::span<const int> samples = groups_[selection].Samples(list, action);
  if (samples.empty()) return;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    scratch.hidden[i] = Wide(samples[i]) * hidden_total_;
    scratch.outputs[i] = Wide(samples[i]) * spec_.member_outputs();
  }
  Gemm({.rows = static_cast<int>(samples.size()),
        .columns = spec_.outputs,
        .a = s.hidden + member * hidden_stride_,
        .a_rows = {.offsets = scratch.hidden.data()},
        .b = s.w + Block(action, member),
        .b_step = spec_.outputs,
        .length = hidden_,
        .c = s.out + member_outputs_[member],
        .c_rows = {.offsets = scratch.outputs.data()},
        .start = GemmStart::kBias,
        .bias = BiasOf(s.bias, action, member, selection),
        .prefetch_b = true});
}

void Head::All(const float* w, const float* bias, const float* hidden, int batch, float* out) {
  const int members = spec_.members;
  ExpandSharedBias(bias);
  const double work = 1.0 * batch * hidden_ * spec_.actions * spec_.member_outputs();
  ForEachTask(pool_, spec_.actions * members, work, [&](int task, int) {
    const int action = task / members;
    const int member = task % members;
    Gemm({.rows = batch,
          .columns = spec_.outputs,
          .a = hidden + member * hidden_stride_,
          .a_rows = {.stride = hidden_total_},
          .b = w + Block(action, member),
          .b_step = spec_.outputs,
          .length = hidden_,
          .c = out + BiasBlock(action, member),
          .c_rows = {.stride = Wide(spec_.actions) * spec_.member_outputs()},
          .start = GemmStart::kBias,
          .bias = BiasOf(bias, action, member)});
  });
}

void Head::ComputeMeanWeights(const float* w, const float* bias, HeadMeanWeights& means) {
  const int members = spec_.members;
  const int actions = spec_.actions;
  ExpandSharedBias(bias);
  const double work = 1.0 * actions * members * hidden_ * spec_.outputs;
  ForEachTask(pool_, actions * members, work, [&](int task, int) {
    const int action = task / members;
    const int member = task % members;
    const std::ptrdiff_t first =
        spec_.separate_hidden ? Wide(member) * hidden_ * actions : Wide(member) * actions;
    RowMeans(w + Block(action, member), hidden_, spec_.outputs,
             means.member_weights.data() + first + action,
             spec_.separate_hidden ? actions : members * actions);
    RowMeans(BiasOf(bias, action, member), 1, spec_.outputs,
             means.member_bias.data() + Wide(member) * actions + action, 1);
  });
  FinishMeanWeights(means);
}

// The means over members, from the means over outputs.
void Head::FinishMeanWeights(HeadMeanWeights& means) const {
  const float members = static_cast<float>(spec_.members);
  if (spec_.separate_hidden) {
    for (std::size_t i = 0; i < means.ensemble_weights.size(); ++i) {
      means.ensemble_weights[i] = means.member_weights[i] / members;
    }
  } else {
    const bool one = spec_.members == 1;  // then the whole matrix is one row
    ColumnSumsOfEach(means.member_weights.data(), one ? 1 : hidden_, spec_.members,
                     one ? hidden_ * spec_.actions : spec_.actions, means.ensemble_weights.data());
    for (float& value : means.ensemble_weights.span()) value /= members;
  }
  ColumnSums(means.member_bias.data(), spec_.members, spec_.actions, /*add=*/false,
             means.ensemble_bias.data());
  for (float& value : means.ensemble_bias.span()) value /= members;
}

void Head::MemberMeans(const HeadMeanWeights& means, const float* hidden, int batch, float* q) {
  // Members that share their hidden units are columns of one gemm.
  const int gemms = spec_.separate_hidden ? spec_.members : 1;
  const int columns = spec_.members / gemms * spec_.actions;
  const int pieces = CeilDiv(batch, kMeanSamples);
  const int vectors = CeilDiv(columns, kLanes);
  const double work = 1.0 * gemms * batch * hidden_ * vectors * kLanes;
  ForEachTask(pool_, gemms * pieces, work, [&](int task, int) {
    const int gemm = task / pieces;
    const int sample = task % pieces * kMeanSamples;
    Gemm({.rows = std::min(kMeanSamples, batch - sample),
          .columns = columns,
          .a = hidden + Wide(sample) * hidden_total_ + gemm * hidden_stride_,
          .a_rows = {.stride = hidden_total_},
          .b = means.member_weights.data() + Wide(gemm) * hidden_ * columns,
          .b_step = columns,
          .length = hidden_,
          .c = q + (Wide(sample) * gemms + gemm) * columns,
          .c_rows = {.stride = Wide(gemms) * columns},
          .start = GemmStart::kBias,
          .bias = means.member_bias.data() + Wide(gemm) * columns});
  });
}

void Head::EnsembleMean(const HeadMeanWeights& means, const float* hidden, int batch, float* q) {
  Gemm({.rows = batch,
        .columns = spec_.actions,
        .a = hidden,
        .a_rows = {.stride = hidden_total_},
        .b = means.ensemble_weights.data(),
        .b_step = spec_.actions,
        .length = hidden_total_,
        .c = q,
        .c_rows = {.stride = spec_.actions},
        .start = GemmStart::kBias,
        .bias = means.ensemble_bias.data()});
}

void Head::BeginBackward(std::span<const int> actions, const float* d_out, int batch) {
  groups_[0].Build(actions, batch, 1);
  std::copy_n(actions.begin(), batch, taken_.begin());
  FindNonzeroRows(d_out, batch * spec_.members, spec_.outputs, active_.data());
}

void Head::BackwardHidden(const float* w, const float* d_out, int batch, float* d_hidden) {
  const int blocks = CeilDiv(hidden_, kHiddenRows);
  const double work = 1.0 * batch * hidden_ * spec_.member_outputs();
  if (spec_.outputs == 1) {
    return ForEachTask(pool_, spec_.actions, work,
                       [&](int action, int) { BackwardHiddenScalar(w, d_out, action, d_hidden); });
  }
  ForEachTask(pool_, spec_.actions * blocks, work, [&](int task, int thread) {
    const int begin = task % blocks * kHiddenRows;
    BackwardHiddenBlock(w, d_out, task / blocks, begin, std::min(begin + kHiddenRows, hidden_),
                        scratch_[thread], d_hidden);
  });
}

// Hidden units [begin, end) for the samples of one action. The sum runs over the outputs, along
// which weights and d_out both lie; the samples are too few to fill vectors.
void Head::BackwardHiddenBlock(const float* w, const float* d_out, int action, int begin, int end,
                               HeadScratch& scratch, float* d_hidden) const {
  const std::span<const int> samples = groups_[0].Samples(0, action);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    scratch.hidden[i] = Wide(samples[i]) * hidden_total_;
    scratch.outputs[i] = Wide(samples[i]) * spec_.member_outputs();
    scratch.active[i] = Wide(samples[i]) * spec_.members;
  }
  DotProblem problem{.rows = end - begin,
                     .columns = static_cast<int>(samples.size()),
                     .a = w + Block(action, 0) + Wide(begin) * spec_.outputs,
                     .a_row_stride = spec_.outputs,
                     .a_segments = member_blocks_.data(),
                     .b = d_out,
                     .b_columns = scratch.outputs.data(),
                     .b_segments = member_outputs_.data(),
                     .active = active_.data(),
                     .active_columns = scratch.active.data(),
                     .segments = spec_.members,
                     .length = spec_.outputs,
                     .c = d_hidden + begin,
                     .c_columns = scratch.hidden.data()};
  if (!spec_.separate_hidden) return DotGemm(problem);
  problem.segments = 1;
  for (int k = 0; k < spec_.members; ++k) {
    DotGemm(problem);
    ++problem.a_segments;
    ++problem.b_segments;
    ++problem.active;
    problem.c += hidden_stride_;
  }
}

// With one output per member the weights lie along the hidden units.
void Head::BackwardHiddenScalar(const float* w, const float* d_out, int action,
                                float* d_hidden) const {
  const int members = spec_.members;
  for (const int sample : groups_[0].Samples(0, action)) {
    GemmProblem problem{.rows = 1,
                        .columns = hidden_,
                        .a = d_out + Wide(sample) * members,
                        .b = w + Block(action, 0),
                        .b_step = hidden_,
                        .length = members,
                        .c = d_hidden + Wide(sample) * hidden_total_};
    if (!spec_.separate_hidden) {
      Gemm(problem);
      continue;
    }
    problem.length = 1;
    for (int k = 0; k < members; ++k) {
      Gemm(problem);
      ++problem.a;
      problem.b += hidden_;
      problem.c += hidden_;
    }
  }
}

// Finds the samples of an action that the member learns from, and returns their number.
int Head::FindLearners(int action, int member, HeadScratch& scratch) const {
  int count = 0;
  for (const int sample : groups_[0].Samples(0, action)) {
    if (!active_[sample * spec_.members + member]) continue;
    scratch.hidden[count] = Wide(sample) * hidden_total_;
    scratch.outputs[count] = Wide(sample) * spec_.member_outputs();
    ++count;
  }
  return count;
}

// dw [end - begin, output] of hidden units [begin, end): the sum over the learners in their order.
void Head::WeightRows(int member, int begin, int end, int learners, const HeadScratch& scratch,
                      const float* hidden, const float* d_out, float* dw) const {
  if (learners == 0) {
    std::fill_n(dw, Wide(end - begin) * spec_.outputs, 0.0F);
    return;
  }
  const float* h = hidden + member * hidden_stride_ + begin;
  const float* d = d_out + member_outputs_[member];
  if (spec_.outputs == 1) {  // the weights lie along the hidden units
    return Gemm({.rows = 1,
                 .columns = end - begin,
                 .a = d,
                 .a_segments = scratch.outputs.data(),
                 .b = h,
                 .b_segments = scratch.hidden.data(),
                 .segments = learners,
                 .length = 1,
                 .c = dw});
  }
  Gemm({.rows = end - begin,
        .columns = spec_.outputs,
        .a = h,
        .a_rows = {.stride = 1},
        .a_segments = scratch.hidden.data(),
        .b = d,
        .b_segments = scratch.outputs.data(),
        .segments = learners,
        .length = 1,
        .c = dw,
        .c_rows = {.stride = spec_.outputs}});
}

// db [output]: the sum over the learners in their order.
void Head::BiasRow(int member, int learners, const HeadScratch& scratch, const float* d_out,
                   float* db) const {
  std::fill_n(db, spec_.outputs, 0.0F);
  for (int i = 0; i < learners; ++i) {
    ColumnSums(d_out + member_outputs_[member] + scratch.outputs[i], 1, spec_.outputs, /*add=*/true,
               db);
  }
}

void Head::BackwardWeights(int task, int thread, const float* hidden, const float* d_out, float* dw,
                           float* db) {
  const int action = task / spec_.members;
  const int member = task % spec_.members;
  HeadScratch& scratch = scratch_[thread];
  const int learners = FindLearners(action, member, scratch);
  WeightRows(member, 0, hidden_, learners, scratch, hidden, d_out, dw + Block(action, member));
  if (db != nullptr) BiasRow(member, learners, scratch, d_out, db + BiasBlock(action, member));
}

void Head::UpdateWeights(int task, int thread, const float* hidden, const float* d_out,
                         const OptimizerUpdate& update, const OptimizerBuffers& head) {
  const int action = task / spec_.members;
  const int member = task % spec_.members;
  HeadScratch& scratch = scratch_[thread];
  const int learners = FindLearners(action, member, scratch);
  const OptimizerBuffers block =
      Range(head, Block(action, member), std::size_t{1} * hidden_ * spec_.outputs);
  if (RowsFillVectors()) {
    UpdateFromOuterProducts(member, learners, scratch, hidden, d_out, update, block);
  } else {
    UpdateInTiles(member, learners, scratch, hidden, d_out, update, block);
  }
  if (spec_.shared_output_bias) return;
  BiasRow(member, learners, scratch, d_out, scratch.tile.data());
  OptimizerBuffers bias =
      Range(head, Block(spec_.actions, 0) + BiasBlock(action, member), spec_.outputs);
  bias.gradient = scratch.tile.span().first(spec_.outputs);
  update.Apply(bias);
}

bool Head::RowsFillVectors() const {
  return (spec_.outputs == 1 ? hidden_ : spec_.outputs) >= OuterProducts::kLeastColumns;
}

// With one output per member the block is a single row of hidden units.
void Head::UpdateFromOuterProducts(int member, int learners, HeadScratch& scratch,
                                   const float* hidden, const float* d_out,
                                   const OptimizerUpdate& update,
                                   const OptimizerBuffers& block) const {
  const bool one_row = spec_.outputs == 1;
  const int columns = one_row ? hidden_ : spec_.outputs;
  const int stride = columns + OuterProducts::kLeastColumns;
  for (int i = 0; i < learners; ++i) {
    const float* h = hidden + member * hidden_stride_ + scratch.hidden[i];
    const float* d = d_out + member_outputs_[member] + scratch.outputs[i];
    float* row = scratch.columns.data() + Wide(i) * stride;
    std::copy_n(one_row ? h : d, columns, row);
    std::copy_n(row, OuterProducts::kLeastColumns, row + columns);
    scratch.rows_of[i] = one_row ? d : h;
    scratch.columns_of[i] = row;
  }
  update.Apply(block, {.rows = one_row ? 1 : hidden_,
                       .columns = columns,
                       .rows_of = std::span(scratch.rows_of).first(learners),
                       .columns_of = std::span(scratch.columns_of).first(learners)});
}

void Head::UpdateInTiles(int member, int learners, HeadScratch& scratch, const float* hidden,
                         const float* d_out, const OptimizerUpdate& update,
                         const OptimizerBuffers& block) const {
  for (int begin = 0; begin < hidden_; begin += kTileRows) {
    const int end = std::min(begin + kTileRows, hidden_);
    WeightRows(member, begin, end, learners, scratch, hidden, d_out, scratch.tile.data());
    const std::size_t count = std::size_t{1} * (end - begin) * spec_.outputs;
    OptimizerBuffers tile = Range(block, Wide(begin) * spec_.outputs, count);
    tile.gradient = scratch.tile.span().first(count);
    update.Apply(tile);
  }
}

double Head::WeightSquares(int sample, const float* hidden, const float* d_out) const {
  // Members that share hidden units form one group.
  const int groups = spec_.separate_hidden ? spec_.members : 1;
  const std::size_t outputs = spec_.member_outputs() / groups;
  const double bias = spec_.shared_output_bias ? 0 : 1;
  double squares = 0;
  for (const int other : groups_[0].Samples(0, taken_[sample])) {
    if (other > sample) break;
    double product = 0;
    for (int group = 0; group < groups; ++group) {
      const auto of = [&](const float* all, int row, std::size_t count) {
        return std::span(all + (Wide(row) * groups + group) * count, count);
      };
      const double d = DotProduct(of(d_out, sample, outputs), of(d_out, other, outputs));
      const double h = DotProduct(of(hidden, sample, hidden_), of(hidden, other, hidden_));
      product += d * (h + bias);
    }
    squares += other == sample ? product : 2 * product;
  }
  return squares;
}

float Head::BackwardSharedBias(const float* d_out, int batch) const {
  double sum = 0;
  const std::ptrdiff_t count = Wide(batch) * spec_.member_outputs();
  for (std::ptrdiff_t i = 0; i < count; ++i) sum += static_cast<double>(d_out[i]);
  return static_cast<float>(sum);
}

}  // namespace uper::cpu
