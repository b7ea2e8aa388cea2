#include "uper/nn/initialization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "uper/base/check.h"

namespace uper {
namespace {

// `count` orthonormal vectors of `length` entries each, [count, length], count <= length: Gaussian
// vectors, each made orthogonal to those before it. Twice, because once loses digits.
std::vector<double> OrthonormalRows(int count, int length, RandomStream& stream) {
  std::vector<double> rows(std::size_t{1} * count * length);
  for (double& value : rows) value = stream.Normal();
  for (int i = 0; i < count; ++i) {
    double* row = &rows[std::size_t{1} * i * length];
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < i; ++j) {
        const double* other = &rows[std::size_t{1} * j * length];
        double product = 0;
        for (int e = 0; e < length; ++e) product += row[e] * other[e];
        for (int e = 0; e < length; ++e) row[e] -= product * other[e];
      }
    }
    double squares = 0;
    for (int e = 0; e < length; ++e) squares += row[e] * row[e];
    for (int e = 0; e < length; ++e) row[e] /= std::sqrt(squares);
  }
  return rows;
}

// One matrix [inputs, outputs] somewhere in the buffer.
struct MatrixPlace {
  int inputs;
  int outputs;
  // Entry (i, o) lies at offset + i * input_stride + (o / run) * run_stride + o % run.
  std::size_t offset;
  std::size_t input_stride;
  int run;
  std::size_t run_stride;
};

void FillOrthogonal(const MatrixPlace& place, double gain, RandomStream& stream,
                    std::span<float> parameters) {
  const bool wide = place.outputs > place.inputs;
  const int count = wide ? place.inputs : place.outputs;
  const int length = wide ? place.outputs : place.inputs;
  const std::vector<double> rows = OrthonormalRows(count, length, stream);
  for (int i = 0; i < place.inputs; ++i) {
    for (int o = 0; o < place.outputs; ++o) {
      const std::size_t row = wide ? i : o;
      const std::size_t at =
          place.offset + i * place.input_stride + o / place.run * place.run_stride + o % place.run;
      parameters[at] = static_cast<float>(gain * rows[row * length + (wide ? o : i)]);
    }
  }
}

// The matrices of one weight tensor: one, or one a member.
std::vector<MatrixPlace> MatricesOf(const NetworkSpec& spec, const ParameterView& view) {
  std::vector<MatrixPlace> places;
  const std::size_t units = spec.hidden_units;
  const std::size_t outputs = spec.outputs;
  if (view.name == "head/w") {
    for (int k = 0; k < spec.members; ++k) {
      places.push_back({spec.hidden_units, spec.actions * spec.outputs,
                        view.offset + k * units * outputs, outputs, spec.outputs,
                        spec.members * units * outputs});
    }
  } else if (view.name == "hidden/w" && spec.separate_hidden) {
    for (int k = 0; k < spec.members; ++k) {
      places.push_back({view.fan_in, spec.hidden_units, view.offset + k * units,
                        spec.members * units, spec.hidden_units, 0});
    }
  } else {
    const int columns = view.shape.back();
    places.push_back({view.fan_in, columns, view.offset, std::size_t(columns), columns, 0});
  }
  return places;
}

}  // namespace

void InitializeUniform(const ParameterLayout& layout, RandomStream& stream,
                       std::span<float> parameters) {
  UPER_CHECK(parameters.size() == layout.size(), "the buffer must fit the layout");
  for (const ParameterView& view : layout.views()) {
    const double bound = 1 / std::sqrt(double{1} * view.fan_in);
    for (float& value : parameters.subspan(view.offset, view.size())) {
      value = static_cast<float>(bound * (2 * stream.Uniform() - 1));
    }
  }
}

void InitializeOrthogonal(const NetworkSpec& spec, const ParameterLayout& layout, double gain,
                          RandomStream& stream, std::span<float> parameters) {
  UPER_CHECK(parameters.size() == layout.size(), "the buffer must fit the layout");
  std::ranges::fill(parameters, 0.0F);
  for (const ParameterView& view : layout.views()) {
    if (!view.name.ends_with("/w")) continue;
    for (const MatrixPlace& place : MatricesOf(spec, view)) {
      FillOrthogonal(place, gain, stream, parameters);
    }
  }
}

}  // namespace uper
