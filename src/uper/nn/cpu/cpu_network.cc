#include "uper/nn/cpu/cpu_network.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cpu/kernels/elementwise.h"

namespace uper {
namespace {

// A dense layer's output in one task: enough samples to share what is read of the weights.
constexpr int kUnits = 128;
constexpr int kSamples = 16;
constexpr int kInputs = 128;     // inputs of a dense layer in one task of its input's gradient
constexpr int kWeightRows = 64;  // and of its weights' gradient
constexpr std::size_t kStepPiece = 1 << 12;  // parameters in one task of the optimiser's step

std::size_t EntrySize(InputType type) {
  return type == InputType::kUint8 ? sizeof(std::uint8_t) : sizeof(float);
}

}  // namespace

CpuNetwork::CpuNetwork(const NetworkSpec& spec, const Options& options, ThreadPool& pool)
    : spec_(spec),
      layout_(spec),
      pool_(pool),
      max_batch_(options.max_batch),
      head_(spec, options.max_batch, pool) {
  UPER_CHECK(options.max_batch >= 1 && options.slots >= 1, "a batch and a slot are needed");
  AddLayers();
  AllocateScratch(options, pool.threads());
}

void CpuNetwork::AddLayers() {
  const auto offsets = [this](const std::string& name) {
    return LayerOffsets{layout_.Find(name + "/w").offset, layout_.Find(name + "/b").offset};
  };
  const std::vector<ImageShape> pictures = spec_.Pictures();
  sizes_.push_back(pictures[0].size());
  for (std::size_t i = 0; i < spec_.convolutions.size(); ++i) {
    convolutions_.emplace_back(pictures[i], spec_.convolutions[i]);
    offsets_.push_back(offsets("conv" + std::to_string(i + 1)));
    sizes_.push_back(pictures[i + 1].size());
  }
  for (std::size_t i = 0; i < spec_.dense.size(); ++i) {
    dense_.emplace_back(sizes_.back(), spec_.dense[i]);
    offsets_.push_back(offsets("dense" + std::to_string(i + 1)));
    sizes_.push_back(spec_.dense[i]);
  }
  dense_.emplace_back(sizes_.back(), spec_.hidden_total());
  offsets_.push_back(offsets("hidden"));
  sizes_.push_back(spec_.hidden_total());
  head_offsets_ = offsets("head");
}

void CpuNetwork::AllocateScratch(const Options& options, int threads) {
  const std::size_t batch = options.max_batch;
  for (int i = 0; i < options.slots; ++i) {
    Slot& slot = slots_.emplace_back();
    for (const int size : sizes_) slot.activations.emplace_back(batch * size);
  }
  d_activations_.emplace_back();
  for (int i = 1; i <= layers(); ++i) d_activations_.emplace_back(batch * sizes_[i]);
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    transposed_weights_.emplace_back(i == 0 ? 0 : convolutions_[i].weights());
  }
  int tasks = options.max_batch;
  for (int layer = 0; layer < layers(); ++layer) tasks += WeightTasks(layer);
  squares_.resize(tasks);
  for (int i = 0; i < threads; ++i) {
    thread_scratch_.emplace_back(std::size_t{kInputs} * Dense::kUnitsTogether);
  }
}

std::span<const float> CpuNetwork::Forward(int slot, std::span<const float> parameters,
                                           std::span<const std::byte> observations, int batch) {
  const Pass pass{slot, parameters, observations};
  Forward({&pass, 1}, batch);
  return hidden(slot);
}

void CpuNetwork::Forward(std::span<const Pass> passes, int batch) {
  for (const Pass& pass : passes) {
    CheckPass(pass, batch);
    slots_[pass.slot].batch = batch;
  }
  pool_.ParallelTasks(static_cast<int>(passes.size()) * batch,
                      [&](int task) { ForwardPicture(passes[task / batch], task % batch); });
  EndOf(UpdatePhase::kConvolutions);
  for (int i = 0; i < static_cast<int>(dense_.size()); ++i) ForwardDense(i, passes);
  EndOf(UpdatePhase::kDense);
}

void CpuNetwork::CheckPass(const Pass& pass, int batch) const {
  UPER_CHECK(pass.slot >= 0 && pass.slot < static_cast<int>(slots_.size()), "no such slot");
  UPER_CHECK(batch >= 1 && batch <= max_batch_, "the batch does not fit");
  UPER_CHECK(pass.parameters.size() == layout_.size(), "parameters of another network");
  UPER_CHECK(
      pass.observations.size() == std::size_t{1} * batch * sizes_[0] * EntrySize(spec_.input.type),
      "observations must fit the batch and the network's input");
}

// The observation and all convolutions of one sample, one after the other while they are in cache.
void CpuNetwork::ForwardPicture(const Pass& pass, int picture) {
  const auto activation = [&](int layer) {
    return slots_[pass.slot].activations[layer].data() +
           std::ptrdiff_t{1} * picture * sizes_[layer];
  };
  const float* parameters = pass.parameters.data();
  const std::size_t bytes = sizes_[0] * EntrySize(spec_.input.type);
  ConvertObservation(spec_.input, pass.observations.data() + picture * bytes, activation(0));
  for (int i = 0; i < static_cast<int>(convolutions_.size()); ++i) {
    convolutions_[i].Forward(activation(i), parameters + offsets_[i].w, parameters + offsets_[i].b,
                             activation(i + 1));
  }
}

void CpuNetwork::ForwardDense(int index, std::span<const Pass> passes) {
  const int layer = static_cast<int>(convolutions_.size()) + index;
  const Dense& dense = dense_[index];
  const int batch = slots_[passes[0].slot].batch;
  const int unit_pieces = CeilDiv(dense.units(), kUnits);
  const int sample_pieces = CeilDiv(batch, kSamples);
  const int tasks = unit_pieces * sample_pieces;
  pool_.ParallelTasks(static_cast<int>(passes.size()) * tasks, [&](int task) {
    const Pass& pass = passes[task / tasks];
    Slot& slot = slots_[pass.slot];
    const int unit = task % unit_pieces * kUnits;
    const int sample = task % tasks / unit_pieces * kSamples;
    dense.Forward(slot.activations[layer].data() + std::ptrdiff_t{1} * sample * dense.inputs(),
                  pass.parameters.data() + offsets_[layer].w,
                  pass.parameters.data() + offsets_[layer].b, std::min(kSamples, batch - sample),
                  unit, std::min(unit + kUnits, dense.units()),
                  slot.activations[layer + 1].data() + std::ptrdiff_t{1} * sample * dense.units());
  });
}

std::span<const float> CpuNetwork::hidden(int slot) const {
  const Slot& used = CheckedSlot(slot);
  return used.activations.back().span().first(std::size_t{1} * used.batch * sizes_.back());
}

void CpuNetwork::HeadTaken(int slot, std::span<const float> parameters,
                           std::span<const int> actions, std::span<float> out) {
  const HeadPass pass{slot, parameters, actions, /*actions_per_sample=*/1, out};
  HeadOutputs({&pass, 1});
}

void CpuNetwork::HeadPerMember(int slot, std::span<const float> parameters,
                               std::span<const int> actions, std::span<float> out) {
  const HeadPass pass{slot, parameters, actions, spec_.members, out};
  HeadOutputs({&pass, 1});
}

void CpuNetwork::HeadOutputs(std::span<const HeadPass> passes) {
  UPER_CHECK(!passes.empty() && passes.size() <= Head::kMaxSelections, "one or two passes");
  const ScopedFlushDenormals flush;
  Head::Selection selections[Head::kMaxSelections];
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const HeadPass& pass = passes[i];
    CheckSizes(pass.slot, pass.parameters, pass.out.size(), spec_.member_outputs());
    UPER_CHECK(batch(pass.slot) == batch(passes[0].slot), "passes of different batches");
    selections[i] = {.w = pass.parameters.data() + head_offsets_.w,
                     .bias = pass.parameters.data() + head_offsets_.b,
                     .hidden = hidden(pass.slot).data(),
                     .actions = pass.actions,
                     .actions_per_sample = pass.actions_per_sample,
                     .out = pass.out.data()};
  }
  head_.Select({selections, passes.size()}, batch(passes[0].slot));
}

void CpuNetwork::HeadAll(int slot, std::span<const float> parameters, std::span<float> out) {
  CheckSizes(slot, parameters, out.size(), std::size_t{1} * spec_.actions * spec_.member_outputs());
  const ScopedFlushDenormals flush;
  head_.All(parameters.data() + head_offsets_.w, parameters.data() + head_offsets_.b,
            hidden(slot).data(), batch(slot), out.data());
}

void CpuNetwork::ComputeHeadTables(std::span<const float> parameters, HeadMeanWeights& tables) {
  UPER_CHECK(parameters.size() == layout_.size(), "parameters of another network");
  const ScopedFlushDenormals flush;
  head_.ComputeTables(parameters.data() + head_offsets_.w, parameters.data() + head_offsets_.b,
                      tables);
}

void CpuNetwork::HeadMeans(int slot, const HeadMeanWeights& tables, std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * batch(slot) * spec_.members * spec_.actions,
             "q must be [batch, member, action]");
  const ScopedFlushDenormals flush;
  head_.Means(tables, hidden(slot).data(), batch(slot), q.data());
}

void CpuNetwork::HeadMean(int slot, const HeadMeanWeights& tables, std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * batch(slot) * spec_.actions, "q must be [batch, action]");
  const ScopedFlushDenormals flush;
  head_.Mean(tables, hidden(slot).data(), batch(slot), q.data());
}

double CpuNetwork::Backward(int slot_index, std::span<const float> parameters,
                            std::span<const int> actions, std::span<const float> d_out,
                            std::span<float> gradient) {
  CheckSizes(slot_index, parameters, d_out.size(), spec_.member_outputs());
  UPER_CHECK(gradient.size() == layout_.size(), "a gradient of another network");
  const ScopedFlushDenormals flush;
  const Slot& slot = slots_[slot_index];
  head_.BeginBackward(actions, d_out.data(), slot.batch);
  head_.BackwardHidden(parameters.data() + head_offsets_.w, d_out.data(), slot.batch,
                       d_activations_.back().data());
  const std::size_t hidden_size = hidden(slot_index).size();
  MaskByActivation(hidden(slot_index), d_activations_.back().span().first(hidden_size));
  EndOf(UpdatePhase::kBackwardHead);
  const int first = convolutions_.empty() ? 1 : 0;  // nobody needs the observation's gradient
  for (int i = static_cast<int>(dense_.size()) - 1; i >= first; --i) {
    BackwardDenseInput(i, parameters.data(), slot);
  }
  for (std::size_t i = 1; i < convolutions_.size(); ++i) {
    convolutions_[i].TransposeWeights(parameters.data() + offsets_[i].w,
                                      transposed_weights_[i].data());
  }
  if (convolutions_.size() > 1) {
    pool_.ParallelTasks(slot.batch, [&](int picture) { BackwardPicture(picture, slot); });
  }
  EndOf(UpdatePhase::kBackwardInputs);
  const double squares = BackwardAllWeights(slot, d_out, gradient);
  EndOf(UpdatePhase::kBackwardWeights);
  return squares;
}

// The gradient by the input of a dense layer, through the ReLU before it.
void CpuNetwork::BackwardDenseInput(int index, const float* parameters, const Slot& slot) {
  const int layer = static_cast<int>(convolutions_.size()) + index;
  const Dense& dense = dense_[index];
  float* dx = d_activations_[layer].data();
  pool_.ParallelTasks(CeilDiv(dense.inputs(), kInputs), [&](int task, int thread) {
    const int begin = task * kInputs;
    const int end = std::min(begin + kInputs, dense.inputs());
    dense.BackwardInput(d_activations_[layer + 1].data(), parameters + offsets_[layer].w,
                        slot.batch, begin, end, thread_scratch_[thread].data(), dx);
    for (int b = 0; b < slot.batch; ++b) {
      const std::size_t at = std::size_t{1} * b * dense.inputs() + begin;
      const std::size_t count = end - begin;
      MaskByActivation(slot.activations[layer].span().subspan(at, count), {dx + at, count});
    }
  });
}

// The gradients by the pictures of one sample, from the last convolution to the second.
void CpuNetwork::BackwardPicture(int picture, const Slot& slot) {
  for (int i = static_cast<int>(convolutions_.size()) - 1; i >= 1; --i) {
    const std::size_t dy = std::size_t{1} * picture * sizes_[i + 1];
    const std::size_t dx = std::size_t{1} * picture * sizes_[i];
    convolutions_[i].BackwardInput(d_activations_[i + 1].data() + dy, transposed_weights_[i].data(),
                                   d_activations_[i].data() + dx);
    MaskByActivation(slot.activations[i].span().subspan(dx, sizes_[i]),
                     d_activations_[i].span().subspan(dx, sizes_[i]));
  }
}

// Tasks of a layer's weights, and one for its bias.
int CpuNetwork::WeightTasks(int layer) const {
  const int convolutions = static_cast<int>(convolutions_.size());
  if (layer < convolutions) return convolutions_[layer].weight_tasks() + 1;
  return CeilDiv(dense_[layer - convolutions].inputs(), kWeightRows) + 1;
}

// All weight gradients but the head's in one go, so that the threads share them evenly: the tasks
// of each layer, then the head's squares for each sample. Each task leaves the squares of what it
// wrote; they are added in the order of the tasks.
double CpuNetwork::BackwardAllWeights(const Slot& slot, std::span<const float> d_out,
                                      std::span<float> gradient) {
  int layer_tasks = 0;
  for (int layer = 0; layer < layers(); ++layer) layer_tasks += WeightTasks(layer);
  const int total = layer_tasks + slot.batch;
  pool_.ParallelTasks(total, [&](int task) {
    if (task >= layer_tasks) {
      squares_[task] =
          head_.WeightSquares(task - layer_tasks, slot.activations.back().data(), d_out.data());
      return;
    }
    int layer = 0;
    int part = task;
    for (; part >= WeightTasks(layer); ++layer) part -= WeightTasks(layer);
    squares_[task] = SumOfSquares(BackwardLayerWeights(layer, part, slot, gradient.data()));
  });
  double head_squares =
      std::accumulate(squares_.begin() + layer_tasks, squares_.begin() + total, 0.0);
  if (head_squares < 0) head_squares = 0;  // by rounding; NaN stays
  if (spec_.shared_output_bias) {
    const float db = head_.BackwardSharedBias(d_out.data(), slot.batch);
    gradient[head_offsets_.b] = db;
    head_squares += double{db} * double{db};
  }
  return std::accumulate(squares_.begin(), squares_.begin() + layer_tasks, 0.0) + head_squares;
}

// One of the tasks of a layer's weights and bias; returns what it wrote.
std::span<const float> CpuNetwork::BackwardLayerWeights(int layer, int task, const Slot& slot,
                                                        float* gradient) {
  const int convolutions = static_cast<int>(convolutions_.size());
  const float* x = slot.activations[layer].data();
  const float* dy = d_activations_[layer + 1].data();
  float* dw = gradient + offsets_[layer].w;
  float* db = gradient + offsets_[layer].b;
  if (layer < convolutions) {
    const Convolution& convolution = convolutions_[layer];
    if (task < convolution.weight_tasks()) {
      return convolution.BackwardWeights(task, x, dy, slot.batch, dw);
    }
    convolution.BackwardBias(dy, slot.batch, db);
    return {db, static_cast<std::size_t>(convolution.output().channels)};
  }
  const Dense& dense = dense_[layer - convolutions];
  const std::size_t units = dense.units();
  const int begin = task * kWeightRows;
  if (begin >= dense.inputs()) {
    ColumnSums(dy, slot.batch, dense.units(), /*add=*/false, db);
    return {db, units};
  }
  const int end = std::min(begin + kWeightRows, dense.inputs());
  dense.BackwardWeights(x, dy, slot.batch, begin, end, dw);
  return {dw + begin * units, (end - begin) * units};
}

void CpuNetwork::Step(int slot_index, std::span<const float> d_out, const OptimizerStep& step,
                      const OptimizerBuffers& buffers) {
  CheckSizes(slot_index, buffers.parameters, d_out.size(), spec_.member_outputs());
  const ScopedFlushDenormals flush;
  const auto part = [&](std::size_t begin, std::size_t count) -> OptimizerBuffers {
    return {.parameters = buffers.parameters.subspan(begin, count),
            .gradient = buffers.gradient.subspan(begin, count),
            .m = buffers.m.subspan(begin, count),
            .v = buffers.v.subspan(begin, count)};
  };
  const std::size_t torso = head_offsets_.w;  // the head comes last in the layout
  const OptimizerBuffers head = part(torso, layout_.size() - torso);
  const float* hidden = slots_[slot_index].activations.back().data();
  const int head_tasks = head_.weight_tasks();
  const int torso_tasks = static_cast<int>((torso + kStepPiece - 1) / kStepPiece);
  // The head in the middle: half of it for each of two threads, as in the other passes.
  const int head_begin = torso_tasks / 2;
  const int head_end = head_begin + head_tasks;
  pool_.ParallelTasks(head_tasks + torso_tasks, [&](int task, int thread) {
    if (task >= head_begin && task < head_end) {
      head_.StepWeights(task - head_begin, thread, hidden, d_out.data(), step, head);
    } else {
      const std::size_t begin = (task < head_begin ? task : task - head_tasks) * kStepPiece;
      step.Apply(part(begin, std::min(kStepPiece, torso - begin)));
    }
  });
  if (spec_.shared_output_bias) step.Apply(part(head_offsets_.b, 1));
}

void CpuNetwork::HeadGradient(int slot_index, std::span<const int> actions,
                              std::span<const float> d_out, std::span<float> gradient) {
  CheckSizes(slot_index, gradient, d_out.size(), spec_.member_outputs());
  const ScopedFlushDenormals flush;
  const Slot& slot = slots_[slot_index];
  head_.BeginBackward(actions, d_out.data(), slot.batch);
  float* db = spec_.shared_output_bias ? nullptr : gradient.data() + head_offsets_.b;
  pool_.ParallelTasks(head_.weight_tasks(), [&](int task, int thread) {
    head_.BackwardWeights(task, thread, slot.activations.back().data(), d_out.data(),
                          gradient.data() + head_offsets_.w, db);
  });
}

const CpuNetwork::Slot& CpuNetwork::CheckedSlot(int slot) const {
  UPER_CHECK(slot >= 0 && slot < static_cast<int>(slots_.size()), "no such slot");
  UPER_CHECK(slots_[slot].batch > 0, "nothing was passed forward into this slot yet");
  return slots_[slot];
}

void CpuNetwork::CheckSizes(int slot, std::span<const float> parameters, std::size_t out,
                            std::size_t outputs_per_sample) const {
  UPER_CHECK(parameters.size() == layout_.size(), "parameters of another network");
  UPER_CHECK(out == CheckedSlot(slot).batch * outputs_per_sample,
             "outputs must fit the batch and the head");
}

}  // namespace uper
