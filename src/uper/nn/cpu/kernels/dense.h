#pragma once

#include <cstddef>

namespace uper::cpu {

// One dense layer with ReLU: y[b, u] = max(0, bias[u] + sum over i of x[b, i] * w[i, u]), weights
// [input, unit]. Each function does a range of the work on the calling thread. Ranges may run at
// the same time, and the result does not depend on how the work is cut. About half of x is zero,
// because it comes from a ReLU (or from the 0/1 cells of a game); so is dy behind the ReLU of this
// layer. All functions skip zeros. They may therefore miss weights that are not finite, but a dy
// that is not finite shows in the gradient of the bias.
class Dense {
 public:
  Dense(int inputs, int units) : inputs_(inputs), units_(units) {}

  int inputs() const { return inputs_; }
  int units() const { return units_; }

  // Units [begin, end) of y [batch, unit].
  void Forward(const float* x, const float* w, const float* bias, int batch, int begin, int end,
               float* y) const;

  // Inputs [begin, end) of dx [batch, input] = dy w^T, one chain of additions over the units in
  // ascending order. `scratch` holds the transpose of a piece of w: kUnitsTogether * (end - begin)
  // floats.
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
