#include <algorithm>
#include <vector>

#include "uper/nn/cuda/conv/first_layer/weight_gradient.h"
#include "uper/nn/cuda/gemm/dense_input_gradient.h"
#include "uper/nn/cuda/gemm/gemm_plan.h"
#include "uper/nn/cuda/learner/torso.h"

// The torso's backward pass: gradients of weights and of layer inputs.

namespace uper::cuda {

int Torso::SquareCount() {
  int count = 0;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    if (i == 0 && backward_reads_pixels()) {
      count += FirstLayerWeightGradientSquares();
    } else if (weight_parts_[i].size() > 0) {
      count += ConvWeightGradientSquares(ConvWeightGradientOf(i, {}, nullptr));
    } else {
      count += GemmBlocks(WeightsCall(i, {}, nullptr));
    }
  }
  return count;
}

void Torso::Backward(const Pass& pass, float* gradient, double* squares, const Branches& branches) {
  std::vector<ConvWeightGradient> images;  // whose parts must be added up
  const auto weights = [&](std::size_t layer, cudaStream_t stream) {
    if (weight_parts_[layer].size() > 0) {
      ConvWeightGradient& call = images.emplace_back(ConvWeightGradientOf(layer, pass, gradient));
      call.squares = squares;
      squares += ConvWeightGradientSquares(call);
      return LaunchConvWeightGradient(call, stream);
    }
    GemmBatch call = WeightsCall(layer, pass, gradient);
    call.squares = squares;
    squares += GemmBlocks(call);
    LaunchGemms(call, stream);
  };
  const std::size_t hidden = layers_.size() - 1;
  for (std::size_t i = hidden; i > 0; --i) {
    if (i < hidden) {
      CheckCuda(cudaEventRecord(branches.fork, branches.main), "cudaEventRecord");
      CheckCuda(cudaStreamWaitEvent(branches.side, branches.fork), "cudaStreamWaitEvent");
      weights(i, branches.side);
    }
    BackwardInputs(i, pass, branches.main);
  }
  // No kernel waits for these weights, so other work goes first.
  branches.hidden_weights(InputOf(hidden, pass));
  if (hidden == 0) return;
  // Not LaunchOrder::kOverlapPrevious: waiting blocks would take room from the main stream's
  // blocks.
  if (!images.empty()) LaunchConvGradientReduce(images, branches.side);
  // The main stream has nothing left to do but these last weights.
  FirstWeights(pass, gradient, squares, branches);
  if (hidden == 1) return;  // the side stream is empty
  CheckCuda(cudaEventRecord(branches.join, branches.side), "cudaEventRecord");
  CheckCuda(cudaStreamWaitEvent(branches.main, branches.join), "cudaStreamWaitEvent");
}

void Torso::FirstWeights(const Pass& pass, float* gradient, double* squares,
                         const Branches& branches) {
  if (!backward_reads_pixels()) {
    CheckCuda(cudaStreamWaitEvent(branches.main, branches.observations_ready),
              "cudaStreamWaitEvent");
    GemmBatch call = WeightsCall(0, pass, gradient);
    call.squares = squares;
    return LaunchGemms(call, branches.main);
  }
  // Overlapping is safe: the previous kernel started after Forward()'s first kernel, which read the
  // same pixels.
  const Layer& layer = layers_[0];
  LaunchFirstLayerWeightGradient({.in = layer.in,
                                  .out = layer.out,
                                  .scale = input_.scale,
                                  .count = options_.max_batch,
                                  .pixels = static_cast<const std::uint8_t*>(pass.pixels),
                                  .d_out = d_outputs_[0].data(),
                                  .parts = pixel_parts_.data(),
                                  .d_w = gradient + layer.w,
                                  .d_bias = gradient + layer.b,
                                  .squares = squares,
                                  .order = LaunchOrder::kOverlapPrevious},
                                 branches.main);
}

// dw[tap, f] = sum over images and positions of x * d_output; the bias gradient is one more row.
GemmBatch Torso::WeightsCall(std::size_t index, const Pass& pass, float* gradient) {
  const Layer& layer = layers_[index];
  const GemmBatch forward = ForwardCall(layer, options_.max_batch);
  GemmBatch call = EmptyCall();
  Gemm& p = call.gemms[0];
  p.rows = layer.taps();
  p.columns = layer.out.channels;
  p.length = options_.max_batch * layer.positions();
  p.a = InputOf(index, pass);
  p.a_rows = forward.gemms[0].a_taps;
  p.a_taps = forward.gemms[0].a_rows;
  p.b = d_outputs_[index].data();
  p.b_columns.stride = 1;
  p.b_taps.stride = p.columns;
  if (layer.convolution) p.b_taps = {.table = layer.d_rows.data()};
  p.c = gradient == nullptr ? nullptr : gradient + layer.w;  // null: the caller needs only sizes
  p.c_rows.stride = p.columns;
  call.a_contiguous = Contiguous::kOutput;
  call.vectors = forward.vectors;
  call.with_bias_gradient = true;
  Plan(call);
  return call;
}

void Torso::BackwardInputs(std::size_t index, const Pass& pass, cudaStream_t stream) {
  if (layers_[index].convolution) {
    const ConvGemmBatch images = InputConvGemms(index, pass);
    if (PrefersConvGemm(layers_[index], images)) return LaunchConvGemms(images, stream);
  }
  if (SupportsDenseInputGradient(index)) return EnqueueDenseInputGradient(index, pass, stream);
  for (GemmBatch& call : InputCalls(index, pass)) {
    call.order = LaunchOrder::kOverlapPrevious;
    LaunchGemms(call, stream);
  }
}

bool Torso::SupportsDenseInputGradient(std::size_t index) const {
  const Layer& layer = layers_[index];
  return !layer.convolution && options_.precision == Precision::kFp32 && layer.w % 4 == 0 &&
         cuda::SupportsDenseInputGradient(options_.max_batch, layer.out.channels);
}

void Torso::EnqueueDenseInputGradient(std::size_t index, const Pass& pass, cudaStream_t stream) {
  const Layer& layer = layers_[index];
  const Layer& before = layers_[index - 1];
  DenseInputGradient call{.batch = options_.max_batch,
                          .inputs = layer.in.channels,
                          .units = layer.out.channels,
                          .d_out = d_outputs_[index].data(),
                          .w = pass.parameters + layer.w,
                          .mask = InputOf(index, pass),
                          .d_x = d_outputs_[index - 1].data(),
                          .d_sample = before.d_size(),
                          .order = LaunchOrder::kOverlapPrevious};
  if (before.convolution) call.d_columns = {.table = before.d_columns.data()};
  LaunchDenseInputGradient(call, stream);
}

std::vector<GemmBatch> Torso::InputCalls(std::size_t index, const Pass& pass) {
  const Layer& layer = layers_[index];
  if (!layer.convolution) return {DenseInputCall(index, pass)};
  std::vector<GemmBatch> calls;
  const std::vector<StridePhase>& phases = phases_[index];
  const float* mask = InputOf(index, pass);
  for (std::size_t first = 0; first < phases.size(); first += kMaxGemms) {
    GemmBatch call = EmptyCall();
    call.count = static_cast<int>(std::min<std::size_t>(kMaxGemms, phases.size() - first));
    for (int i = 0; i < call.count; ++i) {
      const StridePhase& phase = phases[first + i];
      Gemm& p = call.gemms[i];
      p.rows = phase.rows;
      p.columns = layer.in.channels;
      p.length = phase.length;
      p.a = d_outputs_[index].data();
      p.a_rows.table = phase.d_rows.data();
      p.a_taps.table = phase.d_taps.data();
      p.b = pass.parameters + layer.w;
      p.b_columns.stride = layer.out.channels;
      p.b_taps.table = phase.w_taps.data();
      p.mask = mask;
      p.mask_rows.table = phase.mask_rows.data();
      p.c = d_outputs_[index - 1].data();
      p.c_rows.table = phase.dx_rows.data();
    }
    call.b_contiguous = Contiguous::kReduction;
    call.vectors = layer.out.channels % 4 == 0 && layer.w % 4 == 0;
    call.epilogue = GemmEpilogue::kMask;
    Plan(call);
    calls.push_back(call);
  }
  return calls;
}

GemmBatch Torso::DenseInputCall(std::size_t index, const Pass& pass) {
  const Layer& layer = layers_[index];
  GemmBatch call = EmptyCall();
  Gemm& p = call.gemms[0];
  p.rows = options_.max_batch;
  p.columns = layer.in.channels;
  p.length = layer.out.channels;
  p.a = d_outputs_[index].data();
  p.a_rows.stride = p.length;
  p.a_taps.stride = 1;
  p.b = pass.parameters + layer.w;
  p.b_columns.stride = p.length;
  p.b_taps.stride = 1;
  p.mask = InputOf(index, pass);
  p.mask_rows.stride = p.columns;
  p.c = d_outputs_[index - 1].data();
  p.c_rows.stride = layers_[index - 1].d_size();
  if (layers_[index - 1].convolution) {
    p.c_columns = {.table = layers_[index - 1].d_columns.data()};
  }
  call.b_contiguous = Contiguous::kReduction;
  call.vectors = p.length % 4 == 0 && layer.w % 4 == 0;
  call.epilogue = GemmEpilogue::kMask;
  Plan(call);
  return call;
}

}  // namespace uper::cuda
