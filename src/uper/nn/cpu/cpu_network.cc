#include "uper/nn/cpu/cpu_network.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cpu/kernels/elementwise.h"

namespace uper::cpu {
namespace {

// Units and samples of the output of a dense layer in one task: enough samples to share each read
// of the weights.
constexpr int kUnits = 128;
constexpr int kSamples = 16;
constexpr int kInputs = 128;     // inputs of a dense layer in one task of its input gradient
constexpr int kWeightRows = 64;  // and of its weight gradient
constexpr std::size_t kUpdatePiece = 1 << 12;  // parameters in one task of Update()

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
  UPER_CHECK(options.max_batch >= 1 && options.passes >= 1, "a batch and a pass are needed");
  AddLayers();
  AllocateScratch(options, pool.threads());
}

void CpuNetwork::AddLayers() {
  sizes_.push_back(spec_.observation_size());
  for (const LayerSpec& layer : layout_.torso()) {
    if (layer.kind == LayerKind::kConvolution) {
      convolutions_.emplace_back(layer.in, layer.convolution);
    } else {
      dense_.emplace_back(layer.inputs(), layer.outputs());
    }
    sizes_.push_back(layer.outputs());
  }
}

void CpuNetwork::AllocateScratch(const Options& options, int threads) {
  const std::size_t batch = options.max_batch;
  for (int i = 0; i < options.passes; ++i) {
    Pass& pass = passes_.emplace_back();
    for (const int size : sizes_) pass.activations.emplace_back(batch * size);
  }
  d_activations_.emplace_back();
  for (int i = 1; i <= layers(); ++i) d_activations_.emplace_back(batch * sizes_[i]);
  for (int i = 0; i < convolutions(); ++i) {
    transposed_weights_.emplace_back(i == 0 ? 0 : layer(i).weights.size());
  }
  int tasks = options.max_batch;
  for (int i = 0; i < layers(); ++i) tasks += WeightTasks(i);
  squares_.resize(tasks);
  for (int i = 0; i < threads; ++i) {
    thread_scratch_.emplace_back(std::size_t{kInputs} * Dense::kUnitsTogether);
  }
}

std::span<const float> CpuNetwork::Forward(int pass, std::span<const float> parameters,
                                           std::span<const std::byte> observations, int batch) {
  const ForwardCall call{pass, parameters, observations};
  Forward({&call, 1}, batch);
  return hidden(pass);
}

void CpuNetwork::Forward(std::span<const ForwardCall> calls, int batch) {
  for (const ForwardCall& call : calls) {
    CheckCall(call, batch);
    passes_[call.pass].batch = batch;
  }
  pool_.ParallelTasks(static_cast<int>(calls.size()) * batch,
                      [&](int task) { ForwardConvolutions(calls[task / batch], task % batch); });
  EndPhase(UpdatePhase::kConvolutions);
  for (int i = convolutions(); i < layers(); ++i) ForwardDense(i, calls);
  EndPhase(UpdatePhase::kDense);
}

void CpuNetwork::CheckCall(const ForwardCall& call, int batch) const {
  UPER_CHECK(call.pass >= 0 && call.pass < static_cast<int>(passes_.size()), "no such pass");
  UPER_CHECK(batch >= 1 && batch <= max_batch_, "the batch does not fit");
  UPER_CHECK(call.parameters.size() == layout_.size(), "parameters of another network");
  UPER_CHECK(
      call.observations.size() == std::size_t{1} * batch * sizes_[0] * EntrySize(spec_.input.type),
      "observations must fit the batch and the network's input");
}

// Converts the observation of one sample and runs all convolutions while the data is in cache.
void CpuNetwork::ForwardConvolutions(const ForwardCall& call, int sample) {
  const auto activation = [&](int index) {
    return passes_[call.pass].activations[index].data() +
           std::ptrdiff_t{1} * sample * sizes_[index];
  };
  const float* parameters = call.parameters.data();
  const std::size_t bytes = sizes_[0] * EntrySize(spec_.input.type);
  ConvertObservation(spec_.input, call.observations.data() + sample * bytes, activation(0));
  for (int i = 0; i < convolutions(); ++i) {
    convolutions_[i].Forward(activation(i), parameters + layer(i).weights.offset,
                             parameters + layer(i).bias.offset, activation(i + 1));
  }
}

void CpuNetwork::ForwardDense(int index, std::span<const ForwardCall> calls) {
  const Dense& dense = dense_[index - convolutions()];
  const LayerSpec& spec = layer(index);
  const int batch = passes_[calls[0].pass].batch;
  const int unit_pieces = CeilDiv(dense.units(), kUnits);
  const int sample_pieces = CeilDiv(batch, kSamples);
  const int tasks = unit_pieces * sample_pieces;
  pool_.ParallelTasks(static_cast<int>(calls.size()) * tasks, [&](int task) {
    const ForwardCall& call = calls[task / tasks];
    Pass& pass = passes_[call.pass];
    const int unit = task % unit_pieces * kUnits;
    const int sample = task % tasks / unit_pieces * kSamples;
    dense.Forward(pass.activations[index].data() + std::ptrdiff_t{1} * sample * dense.inputs(),
                  call.parameters.data() + spec.weights.offset,
                  call.parameters.data() + spec.bias.offset, std::min(kSamples, batch - sample),
                  unit, std::min(unit + kUnits, dense.units()),
                  pass.activations[index + 1].data() + std::ptrdiff_t{1} * sample * dense.units());
  });
}

std::span<const float> CpuNetwork::hidden(int pass) const {
  const Pass& used = CheckedPass(pass);
  return used.activations.back().span().first(std::size_t{1} * used.batch * sizes_.back());
}

void CpuNetwork::HeadTaken(int pass, std::span<const float> parameters,
                           std::span<const int> actions, std::span<float> out) {
  const HeadCall call{pass, parameters, actions, /*actions_per_sample=*/1, out};
  HeadOutputs({&call, 1});
}

void CpuNetwork::HeadPerMember(int pass, std::span<const float> parameters,
                               std::span<const int> actions, std::span<float> out) {
  const HeadCall call{pass, parameters, actions, spec_.members, out};
  HeadOutputs({&call, 1});
}

void CpuNetwork::HeadOutputs(std::span<const HeadCall> calls) {
  UPER_CHECK(!calls.empty() && calls.size() <= Head::kMaxSelections, "one or two calls");
  const ScopedFlushDenormals flush;
  Head::Selection selections[Head::kMaxSelections];
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const HeadCall& call = calls[i];
    CheckSizes(call.pass, call.parameters, call.out.size(), spec_.member_outputs());
    UPER_CHECK(batch(call.pass) == batch(calls[0].pass), "passes of different batches");
    selections[i] = {.w = call.parameters.data() + layout_.head().weights.offset,
                     .bias = call.parameters.data() + layout_.head().bias.offset,
                     .hidden = hidden(call.pass).data(),
                     .actions = call.actions,
                     .actions_per_sample = call.actions_per_sample,
                     .out = call.out.data()};
  }
  head_.Select({selections, calls.size()}, batch(calls[0].pass));
}

void CpuNetwork::HeadAll(int pass, std::span<const float> parameters, std::span<float> out) {
  CheckSizes(pass, parameters, out.size(), std::size_t{1} * spec_.actions * spec_.member_outputs());
  const ScopedFlushDenormals flush;
  head_.All(parameters.data() + layout_.head().weights.offset,
            parameters.data() + layout_.head().bias.offset, hidden(pass).data(), batch(pass),
            out.data());
}

void CpuNetwork::ComputeHeadMeanWeights(std::span<const float> parameters,
                                        HeadMeanWeights& mean_weights) {
  UPER_CHECK(parameters.size() == layout_.size(), "parameters of another network");
  const ScopedFlushDenormals flush;
  head_.ComputeMeanWeights(parameters.data() + layout_.head().weights.offset,
                           parameters.data() + layout_.head().bias.offset, mean_weights);
}

void CpuNetwork::HeadMemberMeans(int pass, const HeadMeanWeights& mean_weights,
                                 std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * batch(pass) * spec_.members * spec_.actions,
             "q must be [batch, member, action]");
  const ScopedFlushDenormals flush;
  head_.MemberMeans(mean_weights, hidden(pass).data(), batch(pass), q.data());
}

void CpuNetwork::HeadEnsembleMean(int pass, const HeadMeanWeights& mean_weights,
                                  std::span<float> q) {
  UPER_CHECK(q.size() == std::size_t{1} * batch(pass) * spec_.actions, "q must be [batch, action]");
  const ScopedFlushDenormals flush;
  head_.EnsembleMean(mean_weights, hidden(pass).data(), batch(pass), q.data());
}

double CpuNetwork::Backward(int pass_index, std::span<const float> parameters,
                            std::span<const int> actions, std::span<const float> d_out,
                            std::span<float> gradient) {
  CheckSizes(pass_index, parameters, d_out.size(), spec_.member_outputs());
  UPER_CHECK(gradient.size() == layout_.size(), "a gradient of another network");
  const ScopedFlushDenormals flush;
  const Pass& pass = passes_[pass_index];
  head_.BeginBackward(actions, d_out.data(), pass.batch);
  head_.BackwardHidden(parameters.data() + layout_.head().weights.offset, d_out.data(), pass.batch,
                       d_activations_.back().data());
  const std::size_t hidden_size = hidden(pass_index).size();
  MaskByActivation(hidden(pass_index), d_activations_.back().span().first(hidden_size));
  EndPhase(UpdatePhase::kBackwardHead);
  BackwardInputs(parameters.data(), pass);
  EndPhase(UpdatePhase::kBackwardInputs);
  const double squares = BackwardAllWeights(pass, d_out, gradient);
  EndPhase(UpdatePhase::kBackwardWeights);
  return squares;
}

// The gradients with respect to the inputs of all layers except the first. The gradient with
// respect to the observation is not needed.
void CpuNetwork::BackwardInputs(const float* parameters, const Pass& pass) {
  for (int i = layers() - 1; i >= std::max(1, convolutions()); --i) {
    BackwardDenseInput(i, parameters, pass);
  }
  for (int i = 1; i < convolutions(); ++i) {
    convolutions_[i].TransposeWeights(parameters + layer(i).weights.offset,
                                      transposed_weights_[i].data());
  }
  if (convolutions() > 1) {
    pool_.ParallelTasks(pass.batch, [&](int sample) { BackwardConvolutionInputs(sample, pass); });
  }
}

// The gradient with respect to the input of a dense layer, through the ReLU before it.
void CpuNetwork::BackwardDenseInput(int index, const float* parameters, const Pass& pass) {
  const Dense& dense = dense_[index - convolutions()];
  const float* weights = parameters + layer(index).weights.offset;
  float* dx = d_activations_[index].data();
  pool_.ParallelTasks(CeilDiv(dense.inputs(), kInputs), [&](int task, int thread) {
    const int begin = task * kInputs;
    const int end = std::min(begin + kInputs, dense.inputs());
    dense.BackwardInput(d_activations_[index + 1].data(), weights, pass.batch, begin, end,
                        thread_scratch_[thread].data(), dx);
    for (int b = 0; b < pass.batch; ++b) {
      const std::size_t at = std::size_t{1} * b * dense.inputs() + begin;
      const std::size_t count = end - begin;
      MaskByActivation(pass.activations[index].span().subspan(at, count), {dx + at, count});
    }
  });
}

// The gradients with respect to the feature maps of one sample, from the last convolution to the
// second.
void CpuNetwork::BackwardConvolutionInputs(int sample, const Pass& pass) {
  for (int i = convolutions() - 1; i >= 1; --i) {
    const std::size_t dy = std::size_t{1} * sample * sizes_[i + 1];
    const std::size_t dx = std::size_t{1} * sample * sizes_[i];
    convolutions_[i].BackwardInput(d_activations_[i + 1].data() + dy, transposed_weights_[i].data(),
                                   d_activations_[i].data() + dx);
    MaskByActivation(pass.activations[i].span().subspan(dx, sizes_[i]),
                     d_activations_[i].span().subspan(dx, sizes_[i]));
  }
}

// Tasks for the weights of a layer, and one for its bias.
int CpuNetwork::WeightTasks(int index) const {
  if (index < convolutions()) return convolutions_[index].weight_tasks() + 1;
  return CeilDiv(layer(index).inputs(), kWeightRows) + 1;
}

// Computes all weight gradients except those of the head in one call, so that the threads share
// them evenly. There are tasks for each layer, and tasks for the head's squares, one per sample.
// Each task leaves the squares of what it wrote. They are added in the order of the tasks.
double CpuNetwork::BackwardAllWeights(const Pass& pass, std::span<const float> d_out,
                                      std::span<float> gradient) {
  int layer_tasks = 0;
  for (int i = 0; i < layers(); ++i) layer_tasks += WeightTasks(i);
  const int total = layer_tasks + pass.batch;
  pool_.ParallelTasks(total, [&](int task) {
    if (task >= layer_tasks) {
      squares_[task] =
          head_.WeightSquares(task - layer_tasks, pass.activations.back().data(), d_out.data());
      return;
    }
    int index = 0;
    int layer_task = task;
    for (; layer_task >= WeightTasks(index); ++index) layer_task -= WeightTasks(index);
    squares_[task] = SumOfSquares(BackwardLayerWeights(index, layer_task, pass, gradient.data()));
  });
  double head_squares =
      std::accumulate(squares_.begin() + layer_tasks, squares_.begin() + total, 0.0);
  if (head_squares < 0) head_squares = 0;  // by rounding; NaN stays
  if (spec_.shared_output_bias) {
    const float db = head_.BackwardSharedBias(d_out.data(), pass.batch);
    gradient[layout_.head().bias.offset] = db;
    head_squares += double{db} * double{db};
  }
  return std::accumulate(squares_.begin(), squares_.begin() + layer_tasks, 0.0) + head_squares;
}

// Does one of the WeightTasks() of a layer and returns the part of the gradient that it wrote.
std::span<const float> CpuNetwork::BackwardLayerWeights(int index, int task, const Pass& pass,
                                                        float* gradient) {
  const float* x = pass.activations[index].data();
  const float* dy = d_activations_[index + 1].data();
  float* dw = gradient + layer(index).weights.offset;
  float* db = gradient + layer(index).bias.offset;
  if (index < convolutions()) {
    const Convolution& convolution = convolutions_[index];
    if (task < convolution.weight_tasks()) {
      return convolution.BackwardWeights(task, x, dy, pass.batch, dw);
    }
    convolution.BackwardBias(dy, pass.batch, db);
    return {db, static_cast<std::size_t>(convolution.output().channels)};
  }
  const Dense& dense = dense_[index - convolutions()];
  const std::size_t units = dense.units();
  const int begin = task * kWeightRows;
  if (begin >= dense.inputs()) {
    ColumnSums(dy, pass.batch, dense.units(), /*add=*/false, db);
    return {db, units};
  }
  const int end = std::min(begin + kWeightRows, dense.inputs());
  dense.BackwardWeights(x, dy, pass.batch, begin, end, dw);
  return {dw + begin * units, (end - begin) * units};
}

void CpuNetwork::Update(int pass_index, std::span<const float> d_out, const OptimizerUpdate& update,
                        const OptimizerBuffers& buffers) {
  CheckSizes(pass_index, buffers.parameters, d_out.size(), spec_.member_outputs());
  const ScopedFlushDenormals flush;
  const auto range = [&](std::size_t begin, std::size_t count) -> OptimizerBuffers {
    return {.parameters = buffers.parameters.subspan(begin, count),
            .gradient = buffers.gradient.subspan(begin, count),
            .m = buffers.m.subspan(begin, count),
            .v = buffers.v.subspan(begin, count)};
  };
  const std::size_t torso = layout_.head().weights.offset;  // the head comes last in the layout
  const OptimizerBuffers head = range(torso, layout_.size() - torso);
  const float* hidden = passes_[pass_index].activations.back().data();
  const int head_tasks = head_.weight_tasks();
  const int torso_tasks = static_cast<int>(CeilDiv(torso, kUpdatePiece));
  // The tasks of the head lie in the middle: each of two threads gets half of them, as in the other
  // passes.
  const int head_begin = torso_tasks / 2;
  const int head_end = head_begin + head_tasks;
  pool_.ParallelTasks(head_tasks + torso_tasks, [&](int task, int thread) {
    if (task >= head_begin && task < head_end) {
      head_.UpdateWeights(task - head_begin, thread, hidden, d_out.data(), update, head);
    } else {
      const std::size_t begin = (task < head_begin ? task : task - head_tasks) * kUpdatePiece;
      update.Apply(range(begin, std::min(kUpdatePiece, torso - begin)));
    }
  });
  if (spec_.shared_output_bias) update.Apply(range(layout_.head().bias.offset, 1));
}

void CpuNetwork::HeadGradient(int pass_index, std::span<const int> actions,
                              std::span<const float> d_out, std::span<float> gradient) {
  CheckSizes(pass_index, gradient, d_out.size(), spec_.member_outputs());
  const ScopedFlushDenormals flush;
  const Pass& pass = passes_[pass_index];
  head_.BeginBackward(actions, d_out.data(), pass.batch);
  float* db = spec_.shared_output_bias ? nullptr : gradient.data() + layout_.head().bias.offset;
  pool_.ParallelTasks(head_.weight_tasks(), [&](int task, int thread) {
    head_.BackwardWeights(task, thread, pass.activations.back().data(), d_out.data(),
                          gradient.data() + layout_.head().weights.offset, db);
  });
}

const CpuNetwork::Pass& CpuNetwork::CheckedPass(int pass) const {
  UPER_CHECK(pass >= 0 && pass < static_cast<int>(passes_.size()), "no such pass");
  UPER_CHECK(passes_[pass].batch > 0, "this pass has had no Forward() yet");
  return passes_[pass];
}

void CpuNetwork::CheckSizes(int pass, std::span<const float> parameters, std::size_t out,
                            std::size_t outputs_per_sample) const {
  UPER_CHECK(parameters.size() == layout_.size(), "parameters of another network");
  UPER_CHECK(out == CheckedPass(pass).batch * outputs_per_sample,
             "outputs must fit the batch and the head");
}

}  // namespace uper::cpu
