#pragma once

#include <cstdio>
#include <string>

#include "uper/train/run/run_setup.h"

namespace uper::cli {

// Says on standard error why a configuration that could use a GPU uses the CPU, if it does.
inline void WarnCpuFallback(const RunConfig& config) {
  const std::string why = CpuFallbackReason(config);
  if (!why.empty()) std::fprintf(stderr, "uper: on the CPU: %s\n", why.c_str());
}

}  // namespace uper::cli
