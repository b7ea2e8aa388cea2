#pragma once

#include <cstddef>
#include <span>

#include "uper/nn/network_spec.h"

namespace uper::cpu {

// Simple passes over arrays, used before and after the gemms. All run on the calling thread,
// allocate nothing and give the same bits on every instruction set.

// Converts one observation to the input of the network: floats, channels last, scaled. `from` holds
// input.height * width * channels entries of input.type in input.layout.
void ConvertObservation(const InputSpec& input, const std::byte* from, float* to);

// The derivative of ReLU: d[i] = 0 where activation[i] <= 0.
void MaskByActivation(std::span<const float> activation, std::span<float> d);

// sums[c] (+)= sum over r < rows of x[r * columns + c], a chain in ascending r.
void ColumnSums(const float* x, int rows, int columns, bool add, float* sums);
// The same for several matrices that follow each other in memory; overwrites `sums`.
void ColumnSumsOfEach(const float* x, int matrices, int rows, int columns, float* sums);

// to[c * to_stride + r] = from[r * from_stride + c].
void Transpose(const float* from, int rows, int columns, std::ptrdiff_t from_stride, float* to,
               std::ptrdiff_t to_stride);

// to[r * to_stride] = mean of the `length` floats at from + r * length, in 16 partial sums that are
// added as a fixed tree.
void RowMeans(const float* from, int rows, int length, float* to, std::ptrdiff_t to_stride);

// nonzero[r] = whether any of the `columns` floats at x + r * columns is not zero. NaN counts as
// nonzero.
void FindNonzeroRows(const float* x, int rows, int columns, char* nonzero);

// Sum over i of x[i] * y[i] in double, which represents each product exactly. Eight partial sums
// are added as a fixed tree. REQUIRES: equal sizes.
double DotProduct(std::span<const float> x, std::span<const float> y);

}  // namespace uper::cpu
