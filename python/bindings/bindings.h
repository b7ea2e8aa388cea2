#pragma once

#include <nanobind/nanobind.h>

namespace uper::python {

// Each adds its part to the module uper._core.
void BindErrors(nanobind::module_& module);
void BindReplay(nanobind::module_& module);
void BindIndex(nanobind::module_& module);
void BindStatistics(nanobind::module_& module);

}  // namespace uper::python
