#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uper::cpu {

// Name of the instruction set that the kernels use ("AVX3" is AVX-512). run.json records it.
std::string SimdTargetName();

// For tests and benchmarks. Not thread-safe. The statistics of core/ensemble_statistics.h do not
// follow: they use the best instruction set always, and give the same bits on each.
// The instruction sets that the kernels are compiled for and this machine can run, best first.
std::vector<std::int64_t> RunnableSimdTargets();
// Switches to one of them; 0: to the best one again.
void UseSimdTarget(std::int64_t target);
// The same by name. Throws Error(kUsage), which lists the names, if there is no such target.
void UseSimdTarget(const std::string& name);

}  // namespace uper::cpu
