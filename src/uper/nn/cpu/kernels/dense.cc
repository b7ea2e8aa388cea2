#include "uper/nn/cpu/kernels/dense.h"

#include <algorithm>

#include "uper/nn/cpu/kernels/elementwise.h"
#include "uper/nn/cpu/kernels/sparse_product.h"

namespace uper::cpu {

void Dense::Forward(const float* x, const float* w, const float* bias, int batch, int begin,
                    int end, float* y) const {
  SparseProduct({.rows = batch,
                 .columns = end - begin,
                 .length = inputs_,
                 .a = x,
                 .a_row = inputs_,
                 .b = w + begin,
                 .b_step = units_,
                 .c = y + begin,
                 .c_row = units_,
                 .start = bias + begin,
                 .relu = true});
}

void Dense::BackwardInput(const float* dy, const float* w, int batch, int begin, int end,
                          float* scratch, float* dx) const {
  const int columns = end - begin;
  for (int unit = 0; unit < units_; unit += kUnitsTogether) {
    const int units = std::min(kUnitsTogether, units_ - unit);
    Transpose(w + std::ptrdiff_t{1} * begin * units_ + unit, columns, units, units_, scratch,
              columns);
    SparseProduct({.rows = batch,
                   .columns = columns,
                   .length = units,
                   .a = dy + unit,
                   .a_row = units_,
                   .b = scratch,
                   .b_step = columns,
                   .c = dx + begin,
                   .c_row = inputs_,
                   .start_with_result = unit > 0});
  }
}

void Dense::BackwardWeights(const float* x, const float* dy, int batch, int begin, int end,
                            float* dw) const {
  SparseProduct({.rows = end - begin,
                 .columns = units_,
                 .length = batch,
                 .a = x + begin,
                 .a_step = inputs_,
                 .b = dy,
                 .b_step = units_,
                 .c = dw + std::ptrdiff_t{1} * begin * units_,
                 .c_row = units_});
}

}  // namespace uper::cpu
