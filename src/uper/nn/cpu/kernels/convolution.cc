#include "uper/nn/cpu/kernels/convolution.h"

#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/nn/cpu/kernels/elementwise.h"
#include "uper/nn/cpu/kernels/gemm.h"

namespace uper::cpu {
namespace {

constexpr int kConvolutionWeightRows =
    64;  // largest number of rows of the weight gradient in one task
// Approximate number of terms in one chain of additions of the weight gradient.
constexpr int kChain = 256;

}  // namespace

Convolution::Convolution(const ImageShape& input, const ConvolutionSpec& spec)
    : input_(input),
      output_{(input.height - spec.kernel) / spec.stride + 1,
              (input.width - spec.kernel) / spec.stride + 1, spec.filters},
      kernel_(spec.kernel),
      stride_(spec.stride),
      window_row_(spec.kernel * input.channels),
      blocks_per_row_(CeilDiv(window_row_, kConvolutionWeightRows)),
      group_(std::max(1, kChain / positions())) {
  const std::ptrdiff_t line = std::ptrdiff_t{1} * input.width * input.channels;
  for (int row = 0; row < kernel_; ++row) {
    kernel_rows_x_.push_back(row * line);
    kernel_rows_w_.push_back(std::ptrdiff_t{1} * row * window_row_ * spec.filters);
  }
  for (int y = 0; y < output_.height; ++y) {
    for (int x = 0; x < output_.width; ++x) {
      windows_.push_back(y * stride_ * line + x * stride_ * input.channels);
    }
  }
  for (int sample = 0; sample < group_; ++sample) {
    for (int y = 0; y < output_.height; ++y) {
      lines_x_.push_back(std::ptrdiff_t{1} * sample * input_.size() + y * stride_ * line);
      lines_y_.push_back(std::ptrdiff_t{1} * sample * output_.size() +
                         std::ptrdiff_t{1} * y * output_.width * spec.filters);
    }
  }
}

void Convolution::Forward(const float* x, const float* w, const float* b, float* y) const {
  Gemm({.rows = positions(),
        .columns = output_.channels,
        .a = x,
        .a_rows = {.offsets = windows_.data()},
        .a_segments = kernel_rows_x_.data(),
        .b = w,
        .b_step = output_.channels,
        .b_segments = kernel_rows_w_.data(),
        .segments = kernel_,
        .length = window_row_,
        .c = y,
        .c_rows = {.stride = output_.channels},
        .start = GemmStart::kBias,
        .bias = b,
        .finish = GemmFinish::kStoreRelu});
}

void Convolution::BackwardInput(const float* dy, const float* wt, float* dx) const {
  std::fill_n(dx, input_.size(), 0.0F);
  const std::ptrdiff_t tap_size = std::ptrdiff_t{1} * input_.channels * output_.channels;
  for (int row = 0; row < kernel_; ++row) {
    for (int column = 0; column < kernel_; ++column) {
      Gemm({.rows = positions(),
            .columns = input_.channels,
            .a = dy,
            .a_rows = {.stride = output_.channels},
            .b = wt + (row * kernel_ + column) * tap_size,
            .b_step = input_.channels,
            .length = output_.channels,
            .c = dx + kernel_rows_x_[row] + column * input_.channels,
            .c_rows = {.offsets = windows_.data()},
            .start = GemmStart::kResult});
    }
  }
}

void Convolution::TransposeWeights(const float* w, float* wt) const {
  const std::ptrdiff_t tap_size = std::ptrdiff_t{1} * input_.channels * output_.channels;
  for (int tap = 0; tap < kernel_ * kernel_; ++tap) {
    Transpose(w + tap * tap_size, input_.channels, output_.channels, output_.channels,
              wt + tap * tap_size, input_.channels);
  }
}

std::span<const float> Convolution::BackwardWeights(int task, const float* x, const float* dy,
                                                    int batch, float* dw) const {
  const int kernel_row = task / blocks_per_row_;
  const int begin = task % blocks_per_row_ * kConvolutionWeightRows;
  const int rows = std::min(kConvolutionWeightRows, window_row_ - begin);
  float* piece = dw + kernel_rows_w_[kernel_row] + std::ptrdiff_t{1} * begin * output_.channels;
  for (int sample = 0; sample < batch; sample += group_) {
    Gemm({.rows = rows,
          .columns = output_.channels,
          .a = x + std::ptrdiff_t{1} * sample * input_.size() + kernel_rows_x_[kernel_row] + begin,
          .a_rows = {.stride = 1},
          .a_step = stride_ * input_.channels,
          .a_segments = lines_x_.data(),
          .b = dy + std::ptrdiff_t{1} * sample * output_.size(),
          .b_step = output_.channels,
          .b_segments = lines_y_.data(),
          .segments = std::min(group_, batch - sample) * output_.height,
          .length = output_.width,
          .c = piece,
          .c_rows = {.stride = output_.channels},
          .finish = sample == 0 ? GemmFinish::kStore : GemmFinish::kAdd});
  }
  return {piece, std::size_t{1} * rows * output_.channels};
}

void Convolution::BackwardBias(const float* dy, int batch, float* db) const {
  for (int sample = 0; sample < batch; ++sample) {
    ColumnSums(dy + std::ptrdiff_t{1} * sample * output_.size(), positions(), output_.channels,
               /*add=*/sample > 0, db);
  }
}

}  // namespace uper::cpu
