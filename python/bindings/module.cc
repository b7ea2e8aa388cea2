#include <nanobind/nanobind.h>
#include <pthread.h>

#include "bindings.h"
#include "object_lock.h"

namespace uper::python {
namespace {

int fork_generation = 0;

}  // namespace

int ForkGeneration() { return fork_generation; }

}  // namespace uper::python

NB_MODULE(_core, module) {
  module.attr("version") = UPER_VERSION;
  module.attr("missing_packages") = UPER_MISSING_PACKAGES;
  module.doc() = "The parts of uper that are written in C++. Use the package uper instead.";
  pthread_atfork(nullptr, nullptr, [] { ++uper::python::fork_generation; });
  uper::python::BindErrors(module);
  uper::python::BindReplay(module);
  uper::python::BindIndex(module);
  uper::python::BindStatistics(module);
}
