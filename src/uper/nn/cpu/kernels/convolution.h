#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "uper/nn/network_spec.h"

namespace uper::cpu {

// One convolution of a network (VALID padding, ReLU) on feature maps with channels last; weights
// [kernel row, kernel column, channel, filter]. Each function is a piece of work for one thread,
// and pieces may run at the same time. Windows are not copied: the rows of a window are contiguous
// in the feature map, and the gemm walks over them in place.
class Convolution {
 public:
  Convolution(const ImageShape& input, const ConvolutionSpec& spec);

  // y[p, f] = max(0, b[f] + sum over the window of p of x * w[., f]) for one sample.
  void Forward(const float* x, const float* w, const float* b, float* y) const;

  // dx = the gradient with respect to the input x [height, width, channel], from dy [position,
  // filter] and wt = TransposeWeights(w). The taps of a window are added in ascending order.
  void BackwardInput(const float* dy, const float* wt, float* dx) const;
  // wt [kernel row, kernel column, filter, channel].
  void TransposeWeights(const float* w, float* wt) const;

  // Number of pieces of the weight gradient.
  int weight_tasks() const { return kernel_ * blocks_per_row_; }
  // Writes one piece of dw = sum over groups of samples of (sum over samples and positions of
  // x * dy); x and dy hold `batch` samples. The layer decides the size of a group: short chains of
  // additions lose fewer digits, long ones cost less. Returns the piece.
  std::span<const float> BackwardWeights(int task, const float* x, const float* dy, int batch,
                                         float* dw) const;
  // db[f] = sum over samples of (sum over positions of dy).
  void BackwardBias(const float* dy, int batch, float* db) const;

  const ImageShape& input() const { return input_; }
  const ImageShape& output() const { return output_; }

 private:
  int positions() const { return output_.height * output_.width; }

  // Constant after construction. Offsets in floats.
  ImageShape input_;
  ImageShape output_;
  int kernel_;
  int stride_;
  int window_row_;                             // floats of one row of a window
  int blocks_per_row_;                         // of weight_tasks()
  std::vector<std::ptrdiff_t> windows_;        // [position]: first float of its window
  std::vector<std::ptrdiff_t> kernel_rows_x_;  // [kernel row]: in the input
  std::vector<std::ptrdiff_t> kernel_rows_w_;  // [kernel row]: in the weights
  int group_;                                  // samples in one chain of additions
  std::vector<std::ptrdiff_t> lines_x_;  // [sample of a group, line]: first float of its window
  std::vector<std::ptrdiff_t> lines_y_;  // [sample of a group, line]: in the output
};

}  // namespace uper::cpu
