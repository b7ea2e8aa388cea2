#pragma once

#include <cstdio>
#include <string>

#include "uper/train/run/run_setup.h"

namespace uper::cli {

// If a configuration could use a GPU but uses the CPU, prints the reason on standard error.
inline void WarnCpuFallback(const RunConfig& config) {
  const std::string why = CpuFallbackReason(config);
  if (!why.empty()) std::fprintf(stderr, "uper: on the CPU: %s\n", why.c_str());
}

}  // namespace uper::cli
