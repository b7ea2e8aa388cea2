#include <algorithm>
#include <vector>

#include "uper/nn/cuda/conv/first_layer/weight_gradient.h"
#include "uper/nn/cuda/gemm/dense_input_gradient.h"
#include "uper/nn/cuda/gemm/gemm_plan.h"
#include "uper/nn/cuda/learner/torso.h"

// The torso's backward pass: gradients of weights, and by the inputs of layers.

namespace uper {

int Torso::SquareCount() {
  int count = 0;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    if (i == 0 && backward_reads_pixels()) {
      count += PixelWeightSquares();
    } else if (weight_parts_[i].size() > 0) {
      count += PictureWeightSquares(WeightPictures(i, {}, nullptr));
    } else {
      count += ProductBlocks(WeightsCall(i, {}, nullptr));
    }
  }
  return count;
}

void Torso::Backward(const Pass& pass, float* gradient, double* squares, const Branches& branches) {
  std::vector<PictureWeights> pictures;  // whose parts are to be added up
  const auto weights = [&](std::size_t layer, cudaStream_t stream) {
    if (weight_parts_[layer].size() > 0) {
      PictureWeights& call = pictures.emplace_back(WeightPictures(layer, pass, gradient));
      call.squares = squares;
      squares += PictureWeightSquares(call);
      return LaunchPictureWeights(call, stream);
    }
    ProductCall call = WeightsCall(layer, pass, gradient);
    call.squares = squares;
    squares += ProductBlocks(call);
    LaunchProducts(call, stream);
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
  // Nobody waits for these weights: others go first.
  branches.hidden_weights(InputOf(hidden, pass));
  if (hidden == 0) return;
  // Not Follow::kOverlap: blocks that wait would be in the way of the main stream's.
  if (!pictures.empty()) LaunchPictureSums(pictures, branches.side);
  // For the last weights nothing else is left for the main stream.
  FirstWeights(pass, gradient, squares, branches);
  if (hidden == 1) return;  // nothing on the side
  CheckCuda(cudaEventRecord(branches.join, branches.side), "cudaEventRecord");
  CheckCuda(cudaStreamWaitEvent(branches.main, branches.join), "cudaStreamWaitEvent");
}

void Torso::FirstWeights(const Pass& pass, float* gradient, double* squares,
                         const Branches& branches) {
  if (!backward_reads_pixels()) {
    CheckCuda(cudaStreamWaitEvent(branches.main, branches.observations_ready),
              "cudaStreamWaitEvent");
    ProductCall call = WeightsCall(0, pass, gradient);
    call.squares = squares;
    return LaunchProducts(call, branches.main);
  }
  // Right behind a kernel that started after Forward()'s first, which found all pixels there.
  const Layer& layer = layers_[0];
  LaunchPixelWeights({.in = layer.in,
                      .out = layer.out,
                      .scale = input_.scale,
                      .count = options_.max_batch,
                      .pixels = static_cast<const std::uint8_t*>(pass.pixels),
                      .d_out = d_outputs_[0].data(),
                      .parts = pixel_parts_.data(),
                      .d_w = gradient + layer.w,
                      .d_bias = gradient + layer.b,
                      .squares = squares,
                      .follow = Follow::kOverlap},
                     branches.main);
}

// dw[tap, f] = sum over pictures and positions of x * d_output; the bias is the row of sums.
ProductCall Torso::WeightsCall(std::size_t index, const Pass& pass, float* gradient) {
  const Layer& layer = layers_[index];
  const ProductCall forward = ForwardCall(layer, options_.max_batch);
  ProductCall call = EmptyCall();
  Product& p = call.products[0];
  p.rows = layer.taps();
  p.columns = layer.out.channels;
  p.length = options_.max_batch * layer.positions();
  p.a = InputOf(index, pass);
  p.a_rows = forward.products[0].a_taps;
  p.a_taps = forward.products[0].a_rows;
  p.b = d_outputs_[index].data();
  p.b_columns.stride = 1;
  p.b_taps.stride = p.columns;
  if (layer.convolution) p.b_taps = {.table = layer.d_rows.data()};
  p.c = gradient == nullptr ? nullptr : gradient + layer.w;  // without one only sizes are asked for
  p.c_rows.stride = p.columns;
  call.a_along = Along::kSide;
  call.vectors = forward.vectors;
  call.sums_row = true;
  Plan(call);
  return call;
}

void Torso::BackwardInputs(std::size_t index, const Pass& pass, cudaStream_t stream) {
  if (layers_[index].convolution) {
    const PictureCall pictures = InputPictures(index, pass);
    if (PaysAsPictures(layers_[index], pictures)) return LaunchPictures(pictures, stream);
  }
  if (SuitsDenseInputs(index)) return DenseInputGradient(index, pass, stream);
  for (ProductCall& call : InputCalls(index, pass)) {
    call.follow = Follow::kOverlap;
    LaunchProducts(call, stream);
  }
}

bool Torso::SuitsDenseInputs(std::size_t index) const {
  const Layer& layer = layers_[index];
  return !layer.convolution && options_.precision == Precision::kFp32 && layer.w % 4 == 0 &&
         uper::SuitsDenseInputs(options_.max_batch, layer.out.channels);
}

void Torso::DenseInputGradient(std::size_t index, const Pass& pass, cudaStream_t stream) {
  const Layer& layer = layers_[index];
  const Layer& before = layers_[index - 1];
  DenseInputs call{.batch = options_.max_batch,
                   .inputs = layer.in.channels,
                   .units = layer.out.channels,
                   .d_out = d_outputs_[index].data(),
                   .w = pass.parameters + layer.w,
                   .mask = InputOf(index, pass),
                   .d_x = d_outputs_[index - 1].data(),
                   .d_sample = before.d_size(),
                   .follow = Follow::kOverlap};
  if (before.convolution) call.d_columns = {.table = before.d_columns.data()};
  LaunchDenseInputs(call, stream);
}

std::vector<ProductCall> Torso::InputCalls(std::size_t index, const Pass& pass) {
  const Layer& layer = layers_[index];
  if (!layer.convolution) return {DenseInputCall(index, pass)};
  std::vector<ProductCall> calls;
  const std::vector<InputClass>& classes = classes_[index];
  const float* mask = InputOf(index, pass);
  for (std::size_t first = 0; first < classes.size(); first += kMaxProducts) {
    ProductCall call = EmptyCall();
    call.count = static_cast<int>(std::min<std::size_t>(kMaxProducts, classes.size() - first));
    for (int i = 0; i < call.count; ++i) {
      const InputClass& input_class = classes[first + i];
      Product& p = call.products[i];
      p.rows = input_class.rows;
      p.columns = layer.in.channels;
      p.length = input_class.length;
      p.a = d_outputs_[index].data();
      p.a_rows.table = input_class.d_rows.data();
      p.a_taps.table = input_class.d_taps.data();
      p.b = pass.parameters + layer.w;
      p.b_columns.stride = layer.out.channels;
      p.b_taps.table = input_class.w_taps.data();
      p.mask = mask;
      p.mask_rows.table = input_class.mask_rows.data();
      p.c = d_outputs_[index - 1].data();
      p.c_rows.table = input_class.dx_rows.data();
    }
    call.b_along = Along::kLength;
    call.vectors = layer.out.channels % 4 == 0 && layer.w % 4 == 0;
    call.finish = ProductFinish::kMask;
    Plan(call);
    calls.push_back(call);
  }
  return calls;
}

ProductCall Torso::DenseInputCall(std::size_t index, const Pass& pass) {
  const Layer& layer = layers_[index];
  ProductCall call = EmptyCall();
  Product& p = call.products[0];
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
  call.b_along = Along::kLength;
  call.vectors = p.length % 4 == 0 && layer.w % 4 == 0;
  call.finish = ProductFinish::kMask;
  Plan(call);
  return call;
}

}  // namespace uper
