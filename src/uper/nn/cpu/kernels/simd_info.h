#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uper::cpu {

// Name of the instruction set the kernels run on ("AVX3" is AVX-512); goes into run.json.
std::string SimdTargetName();

// For tests and benchmarks: the instruction sets that the kernels are compiled for and this machine
// can run, best first, and a switch to one of them (0: the best again). Not thread-safe.
std::vector<std::int64_t> RunnableSimdTargets();
void UseSimdTarget(std::int64_t target);
// By its name. Throws Error(kUsage), with the names that there are.
void UseSimdTarget(const std::string& name);

}  // namespace uper::cpu
