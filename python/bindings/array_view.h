#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "uper/base/error.h"

namespace uper::python {

// The memory of a C-contiguous array, by Python's buffer protocol, for as long as this object
// lives.
class ArrayView {
 public:
  ArrayView() = default;
  // Throws python_error, or Error(kUsage) if the array is not of this size.
  ArrayView(nanobind::handle array, std::size_t bytes, bool writable, const char* name) {
    const int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array.ptr(), &buffer_, flags) != 0) throw nanobind::python_error();
    held_ = true;
    if (static_cast<std::size_t>(buffer_.len) != bytes) {
      const auto found = static_cast<std::size_t>(buffer_.len);
      PyBuffer_Release(&buffer_);
      held_ = false;
      throw Error(ErrorKind::kUsage, std::string(name) + " has " + std::to_string(found) +
                                         " bytes, not " + std::to_string(bytes));
    }
  }
  // Takes a buffer over and releases it in the end.
  explicit ArrayView(const Py_buffer& buffer) : buffer_(buffer), held_(true) {}
  ArrayView(ArrayView&& other) noexcept : buffer_(other.buffer_), held_(other.held_) {
    other.held_ = false;
  }
  ArrayView& operator=(ArrayView&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~ArrayView() {
    if (held_) PyBuffer_Release(&buffer_);
  }

  std::byte* data() const { return static_cast<std::byte*>(buffer_.buf); }
  template <typename T>
  std::span<T> values() const {
    return {static_cast<T*>(buffer_.buf), static_cast<std::size_t>(buffer_.len) / sizeof(T)};
  }

 private:
  Py_buffer buffer_{};
  bool held_ = false;
};

}  // namespace uper::python
