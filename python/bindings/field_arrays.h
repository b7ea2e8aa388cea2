#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "array_view.h"

namespace uper::python {

// A field as Python sees it: its name, the shape of one transition's array, and its element type in
// the notation of the buffer protocol.
struct FieldType {
  nanobind::object name;
  std::string text;  // the name
  std::vector<Py_ssize_t> shape;
  std::string format;
  std::size_t bytes = 0;  // of one transition
};

// The arrays of a batch, one per field.
struct FieldArrays {
  std::vector<ArrayView> views;
  std::vector<const std::byte*> data;
  std::size_t count = 0;  // transitions

  void Clear();
};

// Collects the arrays of a dict by the fields' names. Returns false if one is missing, is no array,
// or needs a conversion: Python then converts it, or says what is wrong with it.
bool CollectArrays(const std::vector<FieldType>& fields, nanobind::dict arrays, FieldArrays& out);

// A one-dimensional array of `count` elements of this format, without a conversion; nothing if it
// is of another kind.
std::optional<ArrayView> ExactArray(nanobind::handle array, const char* format,
                                    const char* other_format);

}  // namespace uper::python
