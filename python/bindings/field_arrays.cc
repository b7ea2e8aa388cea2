#include "field_arrays.h"

#include <cstring>

namespace uper::python {
namespace {

// The buffer of an array if it has this format, or nothing. Clears Python's error.
bool GetBuffer(PyObject* array, Py_buffer& buffer) {
  if (PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) return true;
  PyErr_Clear();
  return false;
}

bool HasShape(const Py_buffer& buffer, const FieldType& field) {
  const auto dimensions = static_cast<std::size_t>(buffer.ndim);
  if (dimensions != field.shape.size() + 1) return false;
  for (std::size_t d = 0; d < field.shape.size(); ++d) {
    if (buffer.shape[d + 1] != field.shape[d]) return false;
  }
  return true;
}

}  // namespace

void FieldArrays::Clear() {
  views.clear();
  data.clear();
  count = 0;
}

bool CollectArrays(const std::vector<FieldType>& fields, nanobind::dict arrays, FieldArrays& out) {
  out.Clear();
  if (static_cast<std::size_t>(PyDict_Size(arrays.ptr())) != fields.size()) return false;
  for (const FieldType& field : fields) {
    PyObject* array = PyDict_GetItemWithError(arrays.ptr(), field.name.ptr());
    if (array == nullptr) return false;
    Py_buffer buffer;
    if (!GetBuffer(array, buffer)) return false;
    ArrayView view(buffer);
    if (buffer.format == nullptr || field.format != buffer.format || !HasShape(buffer, field)) {
      return false;
    }
    const auto count = static_cast<std::size_t>(buffer.shape[0]);
    if (!out.views.empty() && count != out.count) return false;
    out.count = count;
    out.data.push_back(view.data());
    out.views.push_back(std::move(view));
  }
  return true;
}

std::optional<ArrayView> ExactArray(nanobind::handle array, const char* format,
                                    const char* other_format) {
  Py_buffer buffer;
  if (!GetBuffer(array.ptr(), buffer)) return std::nullopt;
  ArrayView view(buffer);
  if (buffer.ndim != 1 || buffer.format == nullptr) return std::nullopt;
  if (std::strcmp(buffer.format, format) != 0 && std::strcmp(buffer.format, other_format) != 0) {
    return std::nullopt;
  }
  return view;
}

}  // namespace uper::python
