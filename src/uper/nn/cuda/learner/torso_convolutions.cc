#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/conv/conv_stack_training.h"
#include "uper/nn/cuda/learner/torso.h"

// The torso's convolutions as products of whole pictures.

namespace uper {
namespace {

// Blocks that a large GPU needs to be busy; below it small tiles are faster.
constexpr int kFewestBlocks = 64;
constexpr int kBlockColumns = 32;

// Blocks of 16 columns where those of 32 would leave half of a large GPU without work.
bool NarrowPays(const PictureCall& call) {
  constexpr int kMultiprocessors = 132;
  return call.columns % kBlockColumns != 0 ||
         call.columns / kBlockColumns * call.pictures * call.count <= kMultiprocessors / 2;
}

}  // namespace

bool Torso::PaysAsPictures(const Layer& layer, const PictureCall& call) const {
  const int blocks = call.pictures * call.count * call.columns / kBlockColumns;
  return options_.precision == Precision::kFp32 && layer.w % 4 == 0 && layer.b % 4 == 0 &&
         blocks >= kFewestBlocks && SuitsPictures(call);
}

bool Torso::ParametersSuitVectors() const {
  return std::ranges::all_of(
      layers_, [](const Layer& layer) { return layer.w % 4 == 0 && layer.b % 4 == 0; });
}

// Leaves the activations of all convolutions but the last as they were.
void Torso::ForwardStack(const Pass& pass, int count, cudaStream_t stream) const {
  PictureStack call{.pixels = static_cast<const std::uint8_t*>(pass.pixels),
                    .planes = pass.planes,
                    .scale = input_.scale,
                    .count = count,
                    .out = pass.activations->layers[PictureStack::kLayers - 1].data()};
  for (int i = 0; i < PictureStack::kLayers; ++i) {
    call.w[i] = pass.parameters + layers_[i].w;
    call.bias[i] = pass.parameters + layers_[i].b;
  }
  LaunchPictureStack(call, stream);
}

bool Torso::PaysAsPairs() const {
  return 2 * options_.tuned_batch * options_.max_passes >= kFewestBlocks;
}

void Torso::ForwardPairs(std::span<const Pass> passes, int count, cudaStream_t stream,
                         Follow follow) const {
  UPER_CHECK(passes.size() <= PicturePair::kMaxPasses, "more passes than one call has");
  PicturePair call{.scale = input_.scale,
                   .count = count,
                   .passes = static_cast<int>(passes.size()),
                   .follow = follow};
  for (std::size_t i = 0; i < passes.size(); ++i) {
    PicturePair::Pass& pass = call.list[i];
    pass.pixels = static_cast<const std::uint8_t*>(passes[i].pixels);
    for (int layer = 0; layer < PicturePair::kLayers; ++layer) {
      pass.w[layer] = passes[i].parameters + layers_[layer].w;
      pass.bias[layer] = passes[i].parameters + layers_[layer].b;
      pass.out[layer] = passes[i].activations->layers[layer].data();
    }
  }
  LaunchPicturePairs(call, stream);
}

// The same results with a kernel a layer: a pair of blocks has all of two multiprocessors, and has
// to wait until they are empty.
void Torso::ForwardApart(std::span<const Pass> passes, int count, cudaStream_t stream,
                         Follow follow) const {
  ForwardPixels(passes, count, stream, follow);
  for (int i = 1; i < PicturePair::kLayers; ++i) {
    PictureCall call = ForwardPictures(i, passes, count);
    call.narrow = call.by_channels = true;
    LaunchPictures(call, stream);
  }
}

// Without passes: of the size that work is cut for.
PictureCall Torso::ForwardPictures(std::size_t index, std::span<const Pass> passes,
                                   int count) const {
  const Layer& layer = layers_[index];
  const int stride = layer.spec.stride;
  const int filters = layer.out.channels;
  PictureCall call;
  call.count = options_.max_passes;
  call.pictures = options_.tuned_batch;
  call.pixels = layer.in.height * layer.in.width;
  call.channels = layer.in.channels;
  call.columns = filters;
  call.narrow = NarrowPays(call);
  if (!passes.empty()) {
    call.count = static_cast<int>(passes.size());
    call.pictures = count;
  }
  call.b_along = Along::kSide;
  call.c_picture = layer.out.size();
  call.finish = ProductFinish::kBiasRelu;
  call.follow = Follow::kOverlap;
  PictureProduct p;
  p.height = layer.out.height;
  p.width = layer.out.width;
  p.tap_rows = p.tap_columns = layer.spec.kernel;
  p.windows = {.row = stride * layer.in.width, .column = stride};
  p.taps = {.row = layer.in.width, .column = 1};
  const int tap = layer.in.channels * filters;
  p.b_taps = {.row = layer.spec.kernel * tap, .column = tap};
  p.c_at = {.row = layer.out.width * filters, .column = filters};
  std::fill_n(call.products, std::min(call.count, PictureCall::kMaxProducts), p);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    PictureProduct& product = call.products[i];
    product.a = InputOf(index, passes[i]);
    product.b = passes[i].parameters + layer.w;
    product.bias = passes[i].parameters + layer.b;
    product.c = passes[i].activations->layers[index].data();
  }
  return call;
}

// The gradient by a layer's input, through the ReLU before it. Rows and columns of the input with
// the same remainder by the stride are one product.
PictureCall Torso::InputPictures(std::size_t index, const Pass& pass) {
  const Layer& layer = layers_[index];
  const Layer& before = layers_[index - 1];
  const int stride = layer.spec.stride;
  const int kernel = layer.spec.kernel;
  const int channels = layer.in.channels;
  const int tap = channels * layer.out.channels;
  PictureCall call;
  call.count = std::min(stride, layer.in.height) * std::min(stride, layer.in.width);
  call.pictures = options_.max_batch;
  call.pixels = layer.d_height() * layer.d_width();
  call.channels = layer.out.channels;
  call.columns = channels;
  call.narrow = NarrowPays(call);
  call.b_along = Along::kLength;
  call.mask_picture = layer.in.size();
  call.c_picture = before.d_size();
  call.finish = ProductFinish::kMask;
  call.follow = Follow::kOverlap;
  for (int i = 0; i < std::min(call.count, PictureCall::kMaxProducts); ++i) {
    const int row = i / std::min(stride, layer.in.width);
    const int column = i % std::min(stride, layer.in.width);
    const auto share = [&](int total, int first) { return (total - first + stride - 1) / stride; };
    PictureProduct& p = call.products[i];
    p.height = share(layer.in.height, row);
    p.width = share(layer.in.width, column);
    p.tap_rows = share(kernel, row);
    p.tap_columns = share(kernel, column);
    p.a = d_outputs_[index].data();
    p.windows = {.first = layer.border_top * layer.d_width() + layer.border_left,
                 .row = layer.d_width(),
                 .column = 1};
    p.taps = {.row = -layer.d_width(), .column = -1};
    p.b = pass.parameters + layer.w;
    p.b_taps = {.first = (row * kernel + column) * tap,
                .row = stride * kernel * tap,
                .column = stride * tap};
    p.mask = InputOf(index, pass);
    p.mask_at = {.first = (row * layer.in.width + column) * channels,
                 .row = stride * layer.in.width * channels,
                 .column = stride * channels};
    p.c = d_outputs_[index - 1].data();
    p.c_at = {.first = before.d_offset(row, column),
              .row = stride * before.d_width() * channels,
              .column = stride * channels};
  }
  return call;
}

// In fp32 only: the products of other precisions stay.
void Torso::AddWeightParts() {
  int count = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    weight_parts_.emplace_back();
    if (i > 0 && layer.convolution && options_.precision == Precision::kFp32 && layer.w % 4 == 0 &&
        layer.b % 4 == 0 && count < kMostPartSums &&
        SuitsPictureWeights(layer.in, layer.out, layer.spec)) {
      ++count;
      weight_parts_[i] = DeviceBuffer<float>(PictureWeightParts(WeightPictures(i, {}, nullptr)));
    }
  }
}

PictureWeights Torso::WeightPictures(std::size_t index, const Pass& pass, float* gradient) {
  const Layer& layer = layers_[index];
  const bool only_sizes = gradient == nullptr;
  return {.in = layer.in,
          .out = layer.out,
          .spec = layer.spec,
          .count = options_.max_batch,
          .x = InputOf(index, pass),
          .d_out = d_outputs_[index].data() + layer.d_offset(0, 0),
          .d_row = layer.d_width() * layer.out.channels,
          .d_picture = layer.d_size(),
          .parts = weight_parts_[index].data(),
          .d_w = only_sizes ? nullptr : gradient + layer.w,
          .d_bias = only_sizes ? nullptr : gradient + layer.b};
}

}  // namespace uper
