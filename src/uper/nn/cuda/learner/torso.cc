#include "uper/nn/cuda/learner/torso.h"

#include <algorithm>
#include <utility>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cuda/conv/first_layer/forward.h"
#include "uper/nn/cuda/conv/first_layer/weight_gradient.h"
#include "uper/nn/cuda/gemm/gemm_plan.h"
#include "uper/nn/cuda/gemm/skinny_gemm.h"

namespace uper::cuda {
namespace {

bool Fours(std::initializer_list<std::size_t> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](std::size_t n) { return n % 4 == 0; });
}

DeviceBuffer<int> Table(const std::vector<int>& values) {
  return DeviceBuffer<int>(std::span<const int>(values));
}

}  // namespace

Torso::Torso(const NetworkSpec& spec, const ParameterLayout& layout, const Options& options)
    : options_(options), input_(spec.input) {
  AddLayers(layout);
  AddPixelTables();
  const bool supports_stack = options.precision == Precision::kFp32 && AreFloat4Aligned() &&
                              SupportsConvStack(spec.input, spec.convolutions);
  if (!options.backward) {
    has_acting_stack_ = supports_stack;
    return;
  }
  has_training_stack_ = supports_stack && PrefersConvStack();
  if (has_first_layer_kernel_ && SupportsFirstLayerWeightGradient(layers_[0].out)) {
    pixel_parts_ = DeviceBuffer<float>(FirstLayerWeightGradientParts(options.max_batch));
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    d_outputs_.emplace_back(std::size_t{1} * options.max_batch * layer.d_size());
    phases_.push_back(i > 0 && layer.convolution ? PhasesOf(layer, layers_[i - 1])
                                                 : std::vector<StridePhase>());
  }
  AddWeightParts();
}

void Torso::AddLayers(const ParameterLayout& layout) {
  for (const LayerSpec& s : layout.torso()) {
    Layer layer;
    layer.convolution = s.kind == LayerKind::kConvolution;
    layer.in = s.in;
    layer.out = s.out;
    layer.spec = s.convolution;
    layer.w = s.weights.offset;
    layer.b = s.bias.offset;
    UPER_CHECK(layer.b == layer.w + s.weights.size(), "a layer's bias follows its weights");
    if (layer.convolution) {
      if (!layers_.empty()) SetBorders(layer);
      AddTables(layer);
    }
    layers_.push_back(std::move(layer));
  }
}

// Input row y = stride * Y + r contributes to the output rows Y, Y - 1, ..., Y - (taps - 1).
void Torso::SetBorders(Layer& layer) const {
  const int taps = CeilDiv(layer.spec.kernel, layer.spec.stride);
  const auto beyond = [&](int in, int out) { return (in - 1) / layer.spec.stride - (out - 1); };
  layer.border_top = layer.border_left = taps - 1;
  layer.border_bottom = std::max(0, beyond(layer.in.height, layer.out.height));
  layer.border_right = std::max(0, beyond(layer.in.width, layer.out.width));
}

void Torso::AddTables(Layer& layer) const {
  const int stride = layer.spec.stride;
  std::vector<int> windows, taps, weight_rows, d_rows, d_columns;
  for (int b = 0; b < options_.max_batch; ++b) {
    for (int y = 0; y < layer.out.height; ++y) {
      for (int x = 0; x < layer.out.width; ++x) {
        const int first = (y * stride * layer.in.width + x * stride) * layer.in.channels;
        windows.push_back(b * layer.in.size() + first);
        d_rows.push_back(b * layer.d_size() + layer.d_offset(y, x));
        if (b > 0) continue;
        for (int f = 0; f < layer.out.channels; ++f) d_columns.push_back(layer.d_offset(y, x) + f);
      }
    }
  }
  for (int i = 0; i < layer.spec.kernel; ++i) {
    for (int j = 0; j < layer.spec.kernel * layer.in.channels; ++j) {
      taps.push_back(i * layer.in.width * layer.in.channels + j);
      weight_rows.push_back(static_cast<int>(weight_rows.size()) * layer.out.channels);
    }
  }
  layer.windows = Table(windows);
  layer.tap_offsets = Table(taps);
  layer.weight_rows = Table(weight_rows);
  layer.d_rows = Table(d_rows);
  layer.d_columns = Table(d_columns);
}

// The kernel reads four pixels of a channel's row at once.
void Torso::AddPixelTables() {
  const Layer& layer = layers_[0];
  has_first_layer_kernel_ =
      layer.convolution && layer.w % 4 == 0 && SupportsFirstLayerForward(input_, layer.spec);
  if (!layer.convolution || input_.type != InputType::kUint8 ||
      input_.layout != InputLayout::kPlanes ||
      !Fours({std::size_t(layer.spec.kernel), std::size_t(layer.spec.stride),
              std::size_t(layer.in.width), std::size_t(layer.out.channels), layer.w})) {
    return;
  }
  const int kernel = layer.spec.kernel;
  const int plane = layer.in.height * layer.in.width;
  std::vector<int> windows, taps, weights;
  for (int b = 0; b < options_.max_batch; ++b) {
    for (int y = 0; y < layer.out.height; ++y) {
      for (int x = 0; x < layer.out.width; ++x) {
        windows.push_back(b * layer.in.size() + (y * layer.in.width + x) * layer.spec.stride);
      }
    }
  }
  for (int c = 0; c < layer.in.channels; ++c) {
    for (int i = 0; i < kernel; ++i) {
      for (int j = 0; j < kernel; ++j) {
        taps.push_back(c * plane + i * layer.in.width + j);
        weights.push_back(((i * kernel + j) * layer.in.channels + c) * layer.out.channels);
      }
    }
  }
  pixel_windows_ = Table(windows);
  pixel_taps_ = Table(taps);
  pixel_weights_ = Table(weights);
}

std::vector<Torso::StridePhase> Torso::PhasesOf(const Layer& layer, const Layer& before) const {
  std::vector<StridePhase> phases;
  for (int row = 0; row < std::min(layer.spec.stride, layer.in.height); ++row) {
    for (int column = 0; column < std::min(layer.spec.stride, layer.in.width); ++column) {
      phases.push_back(PhaseOf(layer, before, row, column));
    }
  }
  return phases;
}

Torso::StridePhase Torso::PhaseOf(const Layer& layer, const Layer& before, int row,
                                  int column) const {
  const int stride = layer.spec.stride;
  const int kernel = layer.spec.kernel;
  const int filters = layer.out.channels;
  std::vector<int> d_rows, d_taps, w_taps, dx_rows, mask_rows;
  for (int b = 0; b < options_.max_batch; ++b) {
    for (int y = row; y < layer.in.height; y += stride) {
      for (int x = column; x < layer.in.width; x += stride) {
        d_rows.push_back(b * layer.d_size() + layer.d_offset(y / stride, x / stride));
        dx_rows.push_back(b * before.d_size() + before.d_offset(y, x));
        mask_rows.push_back(b * layer.in.size() + (y * layer.in.width + x) * layer.in.channels);
      }
    }
  }
  for (int i = row; i < kernel; i += stride) {
    for (int j = column; j < kernel; j += stride) {
      for (int f = 0; f < filters; ++f) {
        d_taps.push_back(-(i / stride * layer.d_width() + j / stride) * filters + f);
        w_taps.push_back((i * kernel + j) * layer.in.channels * filters + f);
      }
    }
  }
  StridePhase result;
  result.rows = static_cast<int>(d_rows.size());
  result.length = static_cast<int>(d_taps.size());
  result.d_rows = Table(d_rows);
  result.d_taps = Table(d_taps);
  result.w_taps = Table(w_taps);
  result.dx_rows = Table(dx_rows);
  result.mask_rows = Table(mask_rows);
  return result;
}

Torso::Activations Torso::MakeActivations() const {
  Activations activations;
  for (const Layer& layer : layers_) {
    activations.layers.emplace_back(std::size_t{1} * options_.max_batch * layer.out.size());
  }
  return activations;
}

GemmBatch Torso::EmptyCall() const {
  GemmBatch call;
  call.precision = options_.precision;
  return call;
}

// Everything except the pointers of a pass.
GemmBatch Torso::ForwardCall(const Layer& layer, int batch) const {
  GemmBatch call = EmptyCall();
  Gemm& p = call.gemms[0];
  p.rows = batch * layer.positions();
  p.columns = layer.out.channels;
  p.length = layer.taps();
  p.b_columns.stride = 1;
  p.b_taps.stride = p.columns;
  p.c_rows.stride = p.columns;
  if (layer.convolution) {
    p.a_rows.table = layer.windows.data();
    p.a_taps.table = layer.tap_offsets.data();
    p.b_taps = {.table = layer.weight_rows.data()};
  } else {
    p.a_rows.stride = layer.taps();
    p.a_taps.stride = 1;
  }
  const std::size_t window_row = layer.convolution ? layer.spec.kernel * layer.in.channels : 4;
  const std::size_t step = layer.convolution ? layer.spec.stride * layer.in.channels : 4;
  const std::size_t line = std::size_t{1} * layer.in.width * layer.in.channels;
  call.vectors = Fours({window_row, step, line, std::size_t(p.length), std::size_t(p.columns),
                        layer.w, std::size_t(layer.in.size())});
  call.epilogue = GemmEpilogue::kBiasRelu;
  return call;
}

void Torso::ForwardPixels(std::span<const Pass> passes, int count, cudaStream_t stream,
                          LaunchOrder order) const {
  const Layer& layer = layers_[0];
  UPER_CHECK(passes.size() <= FirstLayerForward::kMaxPasses, "more passes than one call has");
  FirstLayerForward call{.in = layer.in,
                         .out = layer.out,
                         .scale = input_.scale,
                         .count = count,
                         .passes = static_cast<int>(passes.size()),
                         .precision = options_.precision,
                         .order = order};
  for (std::size_t i = 0; i < passes.size(); ++i) {
    call.list[i] = {.pixels = static_cast<const std::uint8_t*>(passes[i].pixels),
                    .w = passes[i].parameters + layer.w,
                    .bias = passes[i].parameters + layer.b,
                    .out = passes[i].activations->layers[0].data()};
  }
  LaunchFirstLayerForward(call, stream);
}

void Torso::UsePixels(GemmBatch& call) const {
  for (int i = 0; i < call.count; ++i) {
    Gemm& p = call.gemms[i];
    p.a_scale = input_.scale;
    p.a_rows = {.table = pixel_windows_.data()};
    p.a_taps = {.table = pixel_taps_.data()};
    p.b_taps = {.table = pixel_weights_.data()};
  }
}

const float* Torso::InputOf(std::size_t layer, const Pass& pass) const {
  if (pass.activations == nullptr) return nullptr;  // the caller needs only sizes
  return layer == 0 ? pass.observations : pass.activations->layers[layer - 1].data();
}

void Torso::Forward(std::span<const Pass> passes, int count, cudaStream_t stream, LaunchOrder order,
                    bool shares_gpu) {
  UPER_CHECK(static_cast<int>(passes.size()) <= options_.max_passes && count <= options_.max_batch,
             "more passes or observations than there is memory for");
  std::size_t first = 0;
  if (has_acting_stack_) {
    for (const Pass& pass : passes) ForwardActingStack(pass, count, stream);
    first = ConvStackActing::kLayers;
  } else if (has_training_stack_) {
    if (shares_gpu) {
      ForwardLayerByLayer(passes, count, stream, order);
    } else {
      ForwardTrainingStack(passes, count, stream, order);
    }
    first = ConvStackActing::kLayers;
  } else if (has_first_layer_kernel_) {
    ForwardPixels(passes, count, stream, order);
    first = 1;
  }
  for (std::size_t i = first; i < layers_.size(); ++i) {
    if (i > 0 && layers_[i].convolution &&
        PrefersConvGemm(layers_[i], ForwardConvGemms(i, {}, 0))) {
      LaunchConvGemms(ForwardConvGemms(i, passes, count), stream);
    } else {
      ForwardGemms(i, passes, count, stream);
    }
  }
}

void Torso::ForwardGemms(std::size_t index, std::span<const Pass> passes, int count,
                         cudaStream_t stream) {
  const Layer& layer = layers_[index];
  GemmBatch call = ForwardCall(layer, options_.tuned_batch);
  if (index == 0 && reads_pixels()) call.bytes = call.vectors = true;
  call.count = options_.max_passes;
  std::fill_n(call.gemms + 1, call.count - 1, call.gemms[0]);
  Plan(call);
  const bool few = options_.tuned_batch <= kSkinnyRows && !layer.convolution;
  if (few) {
    if (const int splits = SkinnyGemmSplits(layer.taps())) call.splits = splits;
  }
  call.count = static_cast<int>(passes.size());
  call.gemms[0].rows = count * layer.positions();
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    Gemm& p = call.gemms[pass];
    p = call.gemms[0];
    p.a = InputOf(index, passes[pass]);
    p.a_bytes = static_cast<const std::uint8_t*>(passes[pass].pixels);
    p.b = passes[pass].parameters + layer.w;
    p.bias = passes[pass].parameters + layer.b;
    p.c = passes[pass].activations->layers[index].data();
  }
  if (call.bytes) UsePixels(call);
  PlanBlocks(call);
  call.order = index > 0 ? LaunchOrder::kOverlapPrevious : LaunchOrder::kSerial;
  if (few && SupportsSkinnyGemm(call)) {  // for any count, because other GEMMs have other sums
    LaunchSkinnyGemm(call, stream);
  } else {
    LaunchGemms(call, stream);
  }
}

}  // namespace uper::cuda
