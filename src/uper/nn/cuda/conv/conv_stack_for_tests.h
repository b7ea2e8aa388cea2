#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/conv/first_layer/forward_exact.h"
#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {

// The convolutions of the Atari network, for tests.

inline constexpr InputSpec kAtariScreen{.height = 84,
                                        .width = 84,
                                        .channels = 4,
                                        .type = InputType::kUint8,
                                        .layout = InputLayout::kPlanes};
inline constexpr ConvolutionSpec kAtariLayers[] = {{.filters = 32, .kernel = 8, .stride = 4},
                                                   {.filters = 64, .kernel = 4, .stride = 2},
                                                   {.filters = 64, .kernel = 3, .stride = 1}};

inline constexpr int kAtariPixels = 4 * 84 * 84;

// One layer by plain loops: [row][column][channel] of `side` rows and columns.
inline std::vector<double> Convolved(const std::vector<double>& in, int side, int channels,
                                     const ConvolutionSpec& layer, const std::vector<float>& w,
                                     const std::vector<float>& bias) {
  const int out_side = (side - layer.kernel) / layer.stride + 1;
  std::vector<double> out;
  for (int y = 0; y < out_side; ++y) {
    for (int x = 0; x < out_side; ++x) {
      for (int f = 0; f < layer.filters; ++f) {
        double sum = bias[f];
        for (int i = 0; i < layer.kernel; ++i) {
          for (int j = 0; j < layer.kernel; ++j) {
            const double* pixel =
                &in[std::size_t{1} * ((y * layer.stride + i) * side + x * layer.stride + j) *
                    channels];
            const float* tap =
                &w[std::size_t{1} * (i * layer.kernel + j) * channels * layer.filters];
            for (int c = 0; c < channels; ++c) sum += pixel[c] * tap[c * layer.filters + f];
          }
        }
        out.push_back(std::max(0.0, sum));
      }
    }
  }
  return out;
}

struct AtariWeights {
  std::vector<float> w[ConvStackActing::kLayers], bias[ConvStackActing::kLayers];

  // `whole`: few and whole numbers, so that every sum is exact.
  explicit AtariWeights(bool whole) {
    int channels = kAtariScreen.channels;
    for (int i = 0; i < ConvStackActing::kLayers; ++i) {
      const ConvolutionSpec& layer = kAtariLayers[i];
      const std::size_t size =
          std::size_t{1} * layer.kernel * layer.kernel * channels * layer.filters;
      w[i] = RandomFloats(size, "w" + std::to_string(i));
      bias[i] = RandomFloats(layer.filters, "b" + std::to_string(i));
      for (float& value : w[i]) value *= 0.1F;
      if (whole) {
        std::ranges::fill(w[i], 0.0F);
        for (const int at : RandomInts(size / 16, static_cast<int>(size), "w")) {
          w[i][at] += static_cast<float>(1 - at % 3);
        }
        for (float& value : bias[i]) value = value > 0 ? 2.0F : -1.0F;
      }
      channels = layer.filters;
    }
  }
};

inline std::vector<std::uint8_t> Screens(int count, int levels) {
  std::vector<std::uint8_t> pixels;
  for (const int x : RandomInts(std::size_t{1} * count * kAtariPixels, levels, "pixels")) {
    pixels.push_back(static_cast<std::uint8_t>(x));
  }
  return pixels;
}

// The first layer of the images by FirstLayerForwardExact: [row][column][filter].
inline std::vector<float> FirstLayer(const std::vector<std::uint8_t>& pixels, int count,
                                     float scale, const AtariWeights& weights) {
  const DeviceBuffer<std::uint8_t> images = OnGpu(pixels);
  const DeviceBuffer<float> w = OnGpu(weights.w[0]), bias = OnGpu(weights.bias[0]);
  const ImageShape shape{.height = 20, .width = 20, .channels = 32};
  DeviceBuffer<float> out = Poisoned(std::size_t{1} * count * shape.size());
  FirstLayerForward call{
      .in = {.height = kAtariScreen.height, .width = kAtariScreen.width, .channels = 4},
      .out = shape,
      .scale = scale,
      .count = count};
  call.list[0] = {.pixels = images.data(), .w = w.data(), .bias = bias.data(), .out = out.data()};
  LaunchFirstLayerForwardExact(call, nullptr);
  return FromGpu(out);
}

}  // namespace uper::cuda
