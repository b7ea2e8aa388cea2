#include <nanobind/nanobind.h>

#include "bindings.h"

namespace uper::python {

void BindStatistics(nanobind::module_&) {}

}  // namespace uper::python
