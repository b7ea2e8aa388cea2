#include "uper/nn/initialization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "uper/base/check.h"

namespace uper {
namespace {

// `count` orthonormal vectors [count, length], count <= length. They start as Gaussian vectors.
// Each is made orthogonal to the vectors before it, twice, because a single pass loses digits.
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

// Where the entries of one matrix [inputs, outputs] lie in the buffer.
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

// The matrices in the weights of one layer, one per set of weights.
std::vector<MatrixPlace> MatricesOf(const LayerSpec& layer) {
  const ParameterView& weights = layer.weights;
  std::vector<MatrixPlace> places;
  for (std::size_t k = 0; k < static_cast<std::size_t>(layer.members); ++k) {
    if (layer.kind == LayerKind::kHead) {  // [action, member, hidden unit, output]
      const int actions = weights.shape[0];
      const int units = weights.shape[2];
      const int outputs = weights.shape[3];
      const std::size_t block = std::size_t{1} * units * outputs;
      places.push_back({.inputs = units,
                        .outputs = actions * outputs,
                        .offset = weights.offset + k * block,
                        .input_stride = static_cast<std::size_t>(outputs),
                        .run = outputs,
                        .run_stride = layer.members * block});
    } else {  // [input ..., (member,) unit]
      const int units = weights.shape.back();
      places.push_back({.inputs = weights.fan_in,
                        .outputs = units,
                        .offset = weights.offset + k * units,
                        .input_stride = std::size_t{1} * layer.members * units,
                        .run = units,
                        .run_stride = 0});
    }
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

void InitializeOrthogonal(const ParameterLayout& layout, double gain, RandomStream& stream,
                          std::span<float> parameters) {
  UPER_CHECK(parameters.size() == layout.size(), "the buffer must fit the layout");
  std::ranges::fill(parameters, 0.0F);
  for (const LayerSpec& layer : layout.layers()) {
    for (const MatrixPlace& place : MatricesOf(layer)) {
      FillOrthogonal(place, gain, stream, parameters);
    }
  }
}

}  // namespace uper
