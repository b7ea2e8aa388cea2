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

namespace uper::cuda {

// Convolutions, dense layers and the hidden layer on the GPU, forward and backward. Owns index
// tables and scratch memory, but no parameters and no activations. All functions only enqueue work
// on a stream, so a graph can capture them. The order of all additions depends only on spec and
// Options.
class Torso {
 public:
  struct Options {
    int max_batch = 32;
    // Usual number of observations per pass, which decides how work is cut. Results do not depend
    // on the actual number.
    int tuned_batch = 32;
    int max_passes = 3;    // per Forward()
    bool backward = true;  // whether Backward() will be called
    Precision precision = Precision::kFp32;
  };

  Torso(const NetworkSpec& spec, const ParameterLayout& layout, const Options& options);

  // Outputs of all layers in one pass: [layer][batch, size of the layer], the hidden layer last.
  struct Activations {
    std::vector<DeviceBuffer<float>> layers;

    float* hidden() { return layers.back().data(); }
    const float* hidden() const { return layers.back().data(); }
  };
  Activations MakeActivations() const;

  struct Pass {
    const float* parameters = nullptr;
    // [count, height, width, channel], scaled; for layers that do not read bytes.
    const float* observations = nullptr;
    const void* pixels = nullptr;  // the same as bytes, written before Forward() is called
    // Instead of both, if reads_frame_pointers(): see ConvStackActing.
    FramePointerView frames;
    Activations* activations = nullptr;
  };
  // `order` applies to the first kernel if it reads bytes (see FirstLayerForward), else it is
  // kSerial. `shares_gpu`: use kernels that leave room for other learners; results do not change.
  void Forward(std::span<const Pass> passes, int count, cudaStream_t stream,
               LaunchOrder order = LaunchOrder::kSerial, bool shares_gpu = false);

  // Side streams, for work that is only needed at the end.
  struct Branches {
    cudaStream_t main = nullptr;
    cudaStream_t side = nullptr;
    cudaEvent_t fork = nullptr;  // used several times
    cudaEvent_t join = nullptr;
    cudaEvent_t observations_ready =
        nullptr;  // when Pass::observations are written, if they are read
    // Called once, before the first layer's backward pass. The caller computes the hidden layer's
    // weight gradient from these inputs and d_hidden().
    std::function<void(const float* inputs)> hidden_weights;
  };
  // Computes the gradient of weights and biases of all layers except the hidden one. It starts from
  // d_hidden(), after the hidden layer's ReLU, of a pass with max_batch observations. squares
  // [SquareCount()]: partial sums of the squared gradient. The main stream has waited for the side
  // stream at the end.
  void Backward(const Pass& pass, float* gradient, double* squares, const Branches& branches);
  int SquareCount();
  int hidden_inputs() const { return layers_.back().taps(); }
  // Forward(), or Backward(), reads Pass::pixels and never Pass::observations.
  bool reads_pixels() const { return pixel_taps_.size() > 0; }
  // Whether Forward() can read Pass::frames.
  bool reads_frame_pointers() const { return has_acting_stack_; }
  bool backward_reads_pixels() const { return pixel_parts_.size() > 0; }
  // [batch, hidden_total]: where the head writes the hidden layer's gradient.
  float* d_hidden() { return d_outputs_.back().data(); }

 private:
  // A layer's tables. Gradients of feature maps have a border of zeros, so that windows of the
  // backward convolution may overlap the edge.
  struct Layer {
    bool convolution = false;
    ImageShape in, out;  // dense: in {1, 1, inputs}, out {1, 1, units}
    ConvolutionSpec spec;
    std::size_t w = 0, b = 0;  // offsets of the parameters; the bias follows the weights
    int border_top = 0, border_bottom = 0;  // border rows of d_output, and border columns
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
    DeviceBuffer<int> d_columns;    // [output]: in one image of d_output
  };
  // Input positions with the same remainder modulo the stride see the same taps.
  struct StridePhase {
    int rows = 0, length = 0;
    DeviceBuffer<int> d_rows;     // [batch, position]: in the layer's d_output
    DeviceBuffer<int> d_taps;     // [tap, filter]
    DeviceBuffer<int> w_taps;     // [tap, filter]: in the weights
    DeviceBuffer<int> dx_rows;    // [batch, position]: in the d_output of the layer before
    DeviceBuffer<int> mask_rows;  // [batch, position]: in the layer's input
  };

  void AddLayers(const ParameterLayout& layout);
  void SetBorders(Layer& layer) const;
  void AddTables(Layer& layer) const;
  std::vector<StridePhase> PhasesOf(const Layer& layer, const Layer& before) const;
  StridePhase PhaseOf(const Layer& layer, const Layer& before, int row, int column) const;
  void AddPixelTables();
  GemmBatch EmptyCall() const;
  GemmBatch ForwardCall(const Layer& layer, int batch) const;
  void UsePixels(GemmBatch& call) const;
  void ForwardPixels(std::span<const Pass> passes, int count, cudaStream_t stream,
                     LaunchOrder order) const;
  void ForwardActingStack(const Pass& pass, int count, cudaStream_t stream) const;
  void ForwardTrainingStack(std::span<const Pass> passes, int count, cudaStream_t stream,
                            LaunchOrder order) const;
  void ForwardLayerByLayer(std::span<const Pass> passes, int count, cudaStream_t stream,
                           LaunchOrder order) const;
  bool AreFloat4Aligned() const;
  bool PrefersConvStack() const;
  void ForwardGemms(std::size_t layer, std::span<const Pass> passes, int count,
                    cudaStream_t stream);
  // The same as ConvGemms. Whether they are supported and preferred does not depend on the
  // pointers.
  ConvGemmBatch ForwardConvGemms(std::size_t layer, std::span<const Pass> passes, int count) const;
  ConvGemmBatch InputConvGemms(std::size_t layer, const Pass& pass);
  bool PrefersConvGemm(const Layer& layer, const ConvGemmBatch& call) const;
  // The weight gradient of layers that have partial sums.
  ConvWeightGradient ConvWeightGradientOf(std::size_t layer, const Pass& pass, float* gradient);
  void AddWeightParts();
  void BackwardInputs(std::size_t layer, const Pass& pass, cudaStream_t stream);
  GemmBatch WeightsCall(std::size_t layer, const Pass& pass, float* gradient);
  void FirstWeights(const Pass& pass, float* gradient, double* squares, const Branches& branches);
  // The gradient of a layer's input, after the ReLU before it.
  std::vector<GemmBatch> InputCalls(std::size_t layer, const Pass& pass);
  GemmBatch DenseInputCall(std::size_t layer, const Pass& pass);
  bool SupportsDenseInputGradient(std::size_t layer) const;
  void EnqueueDenseInputGradient(std::size_t layer, const Pass& pass, cudaStream_t stream);
  const float* InputOf(std::size_t layer, const Pass& pass) const;

  Options options_;
  InputSpec input_;
  std::vector<Layer> layers_;  // the hidden layer last
  // The first layer's tables for bytes in channel planes: [batch, position]; [tap] in (channel,
  // row, column) order; and the same order in the weights. Empty if the observations are not
  // supported.
  DeviceBuffer<int> pixel_windows_, pixel_taps_, pixel_weights_;
  bool has_acting_stack_ = false;        // one kernel computes all convolutions (ConvStackActing)
  bool has_training_stack_ = false;      // the same, but it stores all results (ConvStackTraining)
  bool has_first_layer_kernel_ = false;  // the first layer has its own kernel (FirstLayerForward)
  DeviceBuffer<float> pixel_parts_;  // partial sums of FirstLayerWeightGradient; empty if not used
  std::vector<std::vector<StridePhase>> phases_;  // [layer]; for all convolutions except the first
  std::vector<DeviceBuffer<float>> d_outputs_;    // [layer]: [batch, d_size]
  // [layer]: partial sums of a convolution's weight gradient; empty where a GEMM computes it.
  std::vector<DeviceBuffer<float>> weight_parts_;
};

}  // namespace uper::cuda
