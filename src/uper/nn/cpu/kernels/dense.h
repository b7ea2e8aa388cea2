#pragma once

#include <cstddef>

namespace uper::cpu {

// One dense layer with ReLU: y[b, u] = max(0, bias[u] + sum over i of x[b, i] * w[i, u]), weights
// [input, unit]. Each function does a range of the work on the calling thread; ranges may run at
// the same time, and how the work is cut does not change a bit. x is what a ReLU (or a game's 0/1
// cells) left and about half zero, and so is dy behind this layer's ReLU: all functions leave the
// zeros out. Weights that are not finite then hide behind zeros, but dy that is not shows in the
// bias' gradient.
class Dense {
 public:
  Dense(int inputs, int units) : inputs_(inputs), units_(units) {}

  int inputs() const { return inputs_; }
  int units() const { return units_; }

  // Units [begin, end) of y [batch, unit].
  void Forward(const float* x, const float* w, const float* bias, int batch, int begin, int end,
               float* y) const;

  // Inputs [begin, end) of dx [batch, input] = dy w^T, a chain over the units in ascending order.
  // `scratch` holds the transpose of a piece of w: kUnitsTogether * (end - begin) floats.
  static constexpr int kUnitsTogether = 128;
  void BackwardInput(const float* dy, const float* w, int batch, int begin, int end, float* scratch,
                     float* dx) const;

  // Rows [begin, end) of dw [input, unit]: the sum over the batch in ascending order.
  void BackwardWeights(const float* x, const float* dy, int batch, int begin, int end,
                       float* dw) const;

 private:
  int inputs_;
  int units_;
};

}  // namespace uper::cpu
