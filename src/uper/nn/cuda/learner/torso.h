#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <span>
#include <vector>

#include "uper/nn/cuda/conv/conv_gemm.h"
#include "uper/nn/cuda/conv/conv_stack_acting.h"
#include "uper/nn/cuda/conv/conv_weight_gradient.h"
#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/runtime/device_buffer.h"
#include "uper/nn/network_spec.h"
#include "uper/nn/parameter_layout.h"

namespace uper {

// Convolutions, dense layers and the hidden layer on the GPU: forward and backward passes as calls
// of LaunchProducts(). Owns index tables and scratch memory, no parameters and no activations.
// Functions only enqueue work on a stream, so they can be captured in a graph. For a given spec and
// Options the order of all additions is fixed.
class Torso {
 public:
  struct Options {
    int max_batch = 32;
    // Observations of one pass that usually go through together: work is cut for this many.
    // Results do not depend on the number that really does.
    int tuned_batch = 32;
    int max_passes = 3;    // in one Forward()
    bool backward = true;  // Backward() will be called
    Precision precision = Precision::kFp32;
  };

  Torso(const NetworkSpec& spec, const ParameterLayout& layout, const Options& options);

  // Outputs of all layers of one pass: [layer][batch, size of the layer], the hidden layer last.
  struct Activations {
    std::vector<DeviceBuffer<float>> layers;

    float* hidden() { return layers.back().data(); }
    const float* hidden() const { return layers.back().data(); }
  };
  Activations MakeActivations() const;

  struct Pass {
    const float* parameters = nullptr;
    // [count, height, width, channel], scaled: for what does not read pixels.
    const float* observations = nullptr;
    const void* pixels = nullptr;  // the same as they came, there when Forward() was called
    // Instead of both, if the torso reads planes: see PictureStack.
    PlanesToRead planes;
    Activations* activations = nullptr;
  };
  // `follow`: of the first kernel, if that is one of pixels (see PixelConvolution); else kAfter.
  // `crowded`: others use the GPU, too, and find room beside its kernels; results are the same.
  void Forward(std::span<const Pass> passes, int count, cudaStream_t stream,
               Follow follow = Follow::kAfter, bool crowded = false);

  // Streams beside the main one, for work that nothing waits for until the end.
  struct Branches {
    cudaStream_t main = nullptr;
    cudaStream_t side = nullptr;
    cudaEvent_t fork = nullptr;  // reused
    cudaEvent_t join = nullptr;
    cudaEvent_t observations_ready = nullptr;  // Pass::observations are there, if they are read
    // Called with the hidden layer's inputs [batch, input], last but for the first layer: the
    // gradient of its weights, from d_hidden(), is the caller's.
    std::function<void(const float* inputs)> hidden_weights;
  };
  // gradient of weights and biases of all layers but the hidden one, from d_hidden() (already
  // through the hidden layer's ReLU) of a pass with max_batch observations. squares
  // [SquareCount()]: sums over parts of the squared gradient. The side stream has been joined when
  // the main one goes on.
  void Backward(const Pass& pass, float* gradient, double* squares, const Branches& branches);
  int SquareCount();
  int hidden_inputs() const { return layers_.back().taps(); }
  // Forward(), or Backward(), reads Pass::pixels and never looks at Pass::observations.
  bool reads_pixels() const { return pixel_taps_.size() > 0; }
  // Forward() can do with Pass::planes.
  bool reads_planes() const { return has_picture_stack_; }
  bool backward_reads_pixels() const { return pixel_parts_.size() > 0; }
  // [batch, hidden_total]: where the head leaves the hidden layer's gradient.
  float* d_hidden() { return d_outputs_.back().data(); }

 private:
  // A layer's tables. Pictures of gradients have a border of zeros, so that windows of the
  // gradient's own convolution may overhang.
  struct Layer {
    bool convolution = false;
    ImageShape in, out;  // dense: in {1, 1, inputs}, out {1, 1, units}
    ConvolutionSpec spec;
    std::size_t w = 0, b = 0;  // offsets of the parameters; the bias follows the weights
    int border_top = 0, border_bottom = 0;  // of d_output; columns alike by width
    int border_left = 0, border_right = 0;

    int d_height() const { return border_top + out.height + border_bottom; }
    int d_width() const { return border_left + out.width + border_right; }
    int d_size() const { return d_height() * d_width() * out.channels; }
    int d_offset(int y, int x) const {
      return ((y + border_top) * d_width() + x + border_left) * out.channels;
    }
    int positions() const { return out.height * out.width; }
    int taps() const { return convolution ? spec.kernel * spec.kernel * in.channels : in.size(); }

    DeviceBuffer<int> windows;      // [batch, position]: first float of the window in the input
    DeviceBuffer<int> tap_offsets;  // [tap]
    DeviceBuffer<int> weight_rows;  // [tap]: in the weights
    DeviceBuffer<int> d_rows;       // [batch, position]: in d_output
    DeviceBuffer<int> d_columns;    // [output]: in one picture of d_output
  };
  // Input positions with the same remainders by the stride see the same taps.
  struct InputClass {
    int rows = 0, length = 0;
    DeviceBuffer<int> d_rows;     // [batch, position]: in the layer's d_output
    DeviceBuffer<int> d_taps;     // [tap, filter]
    DeviceBuffer<int> w_taps;     // [tap, filter]: in the weights
    DeviceBuffer<int> dx_rows;    // [batch, position]: in the d_output of the layer before
    DeviceBuffer<int> mask_rows;  // [batch, position]: in the layer's input
  };

  void AddLayers(const NetworkSpec& spec, const ParameterLayout& layout);
  void SetBorders(Layer& layer) const;
  void AddTables(Layer& layer) const;
  std::vector<InputClass> ClassesOf(const Layer& layer, const Layer& before) const;
  InputClass ClassOf(const Layer& layer, const Layer& before, int row, int column) const;
  void AddPixelTables();
  ProductCall EmptyCall() const;
  ProductCall ForwardCall(const Layer& layer, int batch) const;
  void UsePixels(ProductCall& call) const;
  void ForwardPixels(std::span<const Pass> passes, int count, cudaStream_t stream,
                     Follow follow) const;
  void ForwardStack(const Pass& pass, int count, cudaStream_t stream) const;
  void ForwardPairs(std::span<const Pass> passes, int count, cudaStream_t stream,
                    Follow follow) const;
  void ForwardApart(std::span<const Pass> passes, int count, cudaStream_t stream,
                    Follow follow) const;
  bool ParametersSuitVectors() const;
  bool PaysAsPairs() const;
  void ForwardProducts(std::size_t layer, std::span<const Pass> passes, int count,
                       cudaStream_t stream);
  // The same as whole pictures; whether that is possible and pays does not depend on the pointers.
  PictureCall ForwardPictures(std::size_t layer, std::span<const Pass> passes, int count) const;
  PictureCall InputPictures(std::size_t layer, const Pass& pass);
  bool PaysAsPictures(const Layer& layer, const PictureCall& call) const;
  // The gradient of the weights of layers that have parts.
  PictureWeights WeightPictures(std::size_t layer, const Pass& pass, float* gradient);
  void AddWeightParts();
  void BackwardInputs(std::size_t layer, const Pass& pass, cudaStream_t stream);
  ProductCall WeightsCall(std::size_t layer, const Pass& pass, float* gradient);
  void FirstWeights(const Pass& pass, float* gradient, double* squares, const Branches& branches);
  // The gradient by a layer's input, through the ReLU before it.
  std::vector<ProductCall> InputCalls(std::size_t layer, const Pass& pass);
  ProductCall DenseInputCall(std::size_t layer, const Pass& pass);
  bool SuitsDenseInputs(std::size_t layer) const;
  void DenseInputGradient(std::size_t layer, const Pass& pass, cudaStream_t stream);
  const float* InputOf(std::size_t layer, const Pass& pass) const;

  Options options_;
  InputSpec input_;
  std::vector<Layer> layers_;  // the hidden layer last
  // The first layer's tables for pixels in planes: [batch, position], [tap] in (channel, row,
  // column) order, and that order in the weights. Empty if the pictures do not suit.
  DeviceBuffer<int> pixel_windows_, pixel_taps_, pixel_weights_;
  bool has_picture_stack_ = false;      // there is one kernel for all convolutions
  bool has_picture_pairs_ = false;      // the same, with the results of all of them
  bool has_pixel_convolution_ = false;  // there is a kernel of its own for the first layer
  DeviceBuffer<float> pixel_parts_;     // of its weights' gradient, if that has one of its own too
  std::vector<std::vector<InputClass>> classes_;  // [layer]; of convolutions but the first
  std::vector<DeviceBuffer<float>> d_outputs_;    // [layer]: [batch, d_size]
  // [layer]: of the gradient of a convolution's weights; empty where products form it.
  std::vector<DeviceBuffer<float>> weight_parts_;
};

}  // namespace uper
