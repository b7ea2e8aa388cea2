#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/conv/conv_stack_training.h"
#include "uper/nn/cuda/learner/torso.h"

// The torso's convolutions by the kernels of conv/.

namespace uper::cuda {
namespace {

// Fewer blocks than this leave a large GPU idle; then small tiles are faster.
constexpr int kMinBlocks = 64;
constexpr int kBlockColumns = 32;

// Whether blocks of 32 columns would leave half of a large GPU idle.
bool PrefersNarrowTiles(const ConvGemmBatch& call) {
  constexpr int kMultiprocessors = 132;
  return call.columns % kBlockColumns != 0 ||
         call.columns / kBlockColumns * call.images * call.count <= kMultiprocessors / 2;
}

}  // namespace

bool Torso::PrefersConvGemm(const Layer& layer, const ConvGemmBatch& call) const {
  const int blocks = call.images * call.count * call.columns / kBlockColumns;
  return options_.precision == Precision::kFp32 && layer.w % 4 == 0 && layer.b % 4 == 0 &&
         blocks >= kMinBlocks && SupportsConvGemms(call);
}

bool Torso::AreFloat4Aligned() const {
  return std::ranges::all_of(
      layers_, [](const Layer& layer) { return layer.w % 4 == 0 && layer.b % 4 == 0; });
}

// Does not write the activations of any convolution except the last.
void Torso::ForwardActingStack(const Pass& pass, int count, cudaStream_t stream) const {
  ConvStackActing call{.pixels = static_cast<const std::uint8_t*>(pass.pixels),
                       .frames = pass.frames,
                       .scale = input_.scale,
                       .count = count,
                       .out = pass.activations->layers[ConvStackActing::kLayers - 1].data()};
  for (int i = 0; i < ConvStackActing::kLayers; ++i) {
    call.w[i] = pass.parameters + layers_[i].w;
    call.bias[i] = pass.parameters + layers_[i].b;
  }
  LaunchConvStackActing(call, stream);
}

bool Torso::PrefersConvStack() const {
  return 2 * options_.tuned_batch * options_.max_passes >= kMinBlocks;
}

void Torso::ForwardTrainingStack(std::span<const Pass> passes, int count, cudaStream_t stream,
                                 LaunchOrder order) const {
  UPER_CHECK(passes.size() <= ConvStackTraining::kMaxPasses, "more passes than one call has");
  ConvStackTraining call{.scale = input_.scale,
                         .count = count,
                         .passes = static_cast<int>(passes.size()),
                         .order = order};
  for (std::size_t i = 0; i < passes.size(); ++i) {
    ConvStackTraining::Pass& pass = call.list[i];
    pass.pixels = static_cast<const std::uint8_t*>(passes[i].pixels);
    for (int layer = 0; layer < ConvStackTraining::kLayers; ++layer) {
      pass.w[layer] = passes[i].parameters + layers_[layer].w;
      pass.bias[layer] = passes[i].parameters + layers_[layer].b;
      pass.out[layer] = passes[i].activations->layers[layer].data();
    }
  }
  LaunchConvStackTraining(call, stream);
}

// The same results with one kernel per layer. The stack's kernel needs two whole multiprocessors
// per image and would have to wait until they are empty.
void Torso::ForwardLayerByLayer(std::span<const Pass> passes, int count, cudaStream_t stream,
                                LaunchOrder order) const {
  ForwardPixels(passes, count, stream, order);
  for (int i = 1; i < ConvStackTraining::kLayers; ++i) {
    ConvGemmBatch call = ForwardConvGemms(i, passes, count);
    call.narrow = call.by_channels = true;
    LaunchConvGemms(call, stream);
  }
}

// Without passes: the sizes that work is cut for.
ConvGemmBatch Torso::ForwardConvGemms(std::size_t index, std::span<const Pass> passes,
                                      int count) const {
  const Layer& layer = layers_[index];
  const int stride = layer.spec.stride;
  const int filters = layer.out.channels;
  ConvGemmBatch call;
  call.count = options_.max_passes;
  call.images = options_.tuned_batch;
  call.pixels = layer.in.height * layer.in.width;
  call.channels = layer.in.channels;
  call.columns = filters;
  call.narrow = PrefersNarrowTiles(call);
  if (!passes.empty()) {
    call.count = static_cast<int>(passes.size());
    call.images = count;
  }
  call.b_contiguous = Contiguous::kOutput;
  call.c_image = layer.out.size();
  call.epilogue = GemmEpilogue::kBiasRelu;
  call.order = LaunchOrder::kOverlapPrevious;
  ConvGemm p;
  p.height = layer.out.height;
  p.width = layer.out.width;
  p.tap_rows = p.tap_columns = layer.spec.kernel;
  p.windows = {.row = stride * layer.in.width, .column = stride};
  p.taps = {.row = layer.in.width, .column = 1};
  const int tap = layer.in.channels * filters;
  p.b_taps = {.row = layer.spec.kernel * tap, .column = tap};
  p.c_at = {.row = layer.out.width * filters, .column = filters};
  std::fill_n(call.gemms, std::min(call.count, ConvGemmBatch::kMaxGemms), p);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    ConvGemm& gemm = call.gemms[i];
    gemm.a = InputOf(index, passes[i]);
    gemm.b = passes[i].parameters + layer.w;
    gemm.bias = passes[i].parameters + layer.b;
    gemm.c = passes[i].activations->layers[index].data();
  }
  return call;
}

// The gradient of a layer's input, after the ReLU before it. Rows and columns of the input with the
// same remainder modulo the stride form one GEMM.
ConvGemmBatch Torso::InputConvGemms(std::size_t index, const Pass& pass) {
  const Layer& layer = layers_[index];
  const Layer& before = layers_[index - 1];
  const int stride = layer.spec.stride;
  const int kernel = layer.spec.kernel;
  const int channels = layer.in.channels;
  const int tap = channels * layer.out.channels;
  ConvGemmBatch call;
  call.count = std::min(stride, layer.in.height) * std::min(stride, layer.in.width);
  call.images = options_.max_batch;
  call.pixels = layer.d_height() * layer.d_width();
  call.channels = layer.out.channels;
  call.columns = channels;
  call.narrow = PrefersNarrowTiles(call);
  call.b_contiguous = Contiguous::kReduction;
  call.mask_image = layer.in.size();
  call.c_image = before.d_size();
  call.epilogue = GemmEpilogue::kMask;
  call.order = LaunchOrder::kOverlapPrevious;
  for (int i = 0; i < std::min(call.count, ConvGemmBatch::kMaxGemms); ++i) {
    const int row = i / std::min(stride, layer.in.width);
    const int column = i % std::min(stride, layer.in.width);
    const auto share = [&](int total, int first) { return (total - first + stride - 1) / stride; };
    ConvGemm& p = call.gemms[i];
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

// Only in fp32; other precisions use GEMMs.
void Torso::AddWeightParts() {
  int count = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    weight_parts_.emplace_back();
    if (i > 0 && layer.convolution && options_.precision == Precision::kFp32 && layer.w % 4 == 0 &&
        layer.b % 4 == 0 && count < kMaxGradientReductions &&
        SupportsConvWeightGradient(layer.in, layer.out, layer.spec)) {
      ++count;
      weight_parts_[i] =
          DeviceBuffer<float>(ConvWeightGradientParts(ConvWeightGradientOf(i, {}, nullptr)));
    }
  }
}

ConvWeightGradient Torso::ConvWeightGradientOf(std::size_t index, const Pass& pass,
                                               float* gradient) {
  const Layer& layer = layers_[index];
  const bool only_sizes = gradient == nullptr;
  return {.in = layer.in,
          .out = layer.out,
          .spec = layer.spec,
          .count = options_.max_batch,
          .x = InputOf(index, pass),
          .d_out = d_outputs_[index].data() + layer.d_offset(0, 0),
          .d_row = layer.d_width() * layer.out.channels,
          .d_image = layer.d_size(),
          .parts = weight_parts_[index].data(),
          .d_w = only_sizes ? nullptr : gradient + layer.w,
          .d_bias = only_sizes ? nullptr : gradient + layer.b};
}

}  // namespace uper::cuda
