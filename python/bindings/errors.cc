#include <new>
#include <string>
#include <string_view>

#include "bindings.h"
#include "uper/base/error.h"

namespace uper::python {
namespace {

// A broken contract names our source: "file.cc:12: check failed: condition: why". Users get the
// why.
std::string WithoutSource(const std::string& message) {
  constexpr std::string_view kMark = ": check failed: ";
  const std::size_t mark = message.find(kMark);
  if (mark == std::string::npos) return message;
  const std::size_t why = message.find(": ", mark + kMark.size());
  return why == std::string::npos ? message : message.substr(why + 2);
}

const char* ClassOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "UsageError";
    case ErrorKind::kMissingData:
      return "MissingDataError";
    case ErrorKind::kResources:
      return "DiskError";
    case ErrorKind::kCorrupt:
      return "CorruptError";
    case ErrorKind::kNumeric:
      return "NumericError";
    case ErrorKind::kInterrupted:
      return "Interrupted";
    case ErrorKind::kInternal:
      break;
  }
  return "InternalError";
}

void Raise(const char* name, const std::string& message) {
  PyObject* module = PyImport_ImportModule("uper.errors");
  if (module == nullptr) return;
  PyObject* type = PyObject_GetAttrString(module, name);
  if (type != nullptr) PyErr_SetString(type, message.c_str());
  Py_XDECREF(type);
  Py_DECREF(module);
}

}  // namespace

void BindErrors(nanobind::module_&) {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      Raise(ClassOf(error.kind()), WithoutSource(error.what()));
    } catch (const std::bad_alloc&) {
      Raise("OutOfMemoryError", "the memory does not suffice for this; use a smaller capacity");
    }
  });
}

}  // namespace uper::python
