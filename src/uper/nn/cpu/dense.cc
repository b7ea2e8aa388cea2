#include "uper/nn/cpu/dense.h"

#include "uper/nn/cpu/elementwise.h"
#include "uper/nn/cpu/gemm.h"
#include "uper/nn/cpu/sparse_product.h"

namespace uper {

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

void Dense::BackwardInput(const float* dyt, const float* w, int batch, int begin, int end,
                          float* scratch, float* dx) const {
  const int lanes = PaddedBatch(batch);
  Gemm({.rows = end - begin,
        .columns = lanes,
        .a = w + std::ptrdiff_t{1} * begin * units_,
        .a_rows = {.stride = units_},
        .b = dyt,
        .b_step = lanes,
        .length = units_,
        .c = scratch,
        .c_rows = {.stride = lanes}});
  Transpose(scratch, end - begin, batch, lanes, dx + begin, inputs_);
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

}  // namespace uper
