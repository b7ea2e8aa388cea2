#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace uper {

// A request to stop, set by a signal handler or another thread. It is polled; nothing waits for it.
using StopFlag = std::atomic<bool>;

// Number of cores this process may use (affinity and cgroups counted), at least 1.
int AvailableCores();

// Calls task(0), ..., task(count - 1) on `jobs` threads, in no particular order: a task must depend
// on its index alone. When a task throws, no further task starts and the exception of the lowest
// index that threw is rethrown here. When `stop` becomes true, no further task starts and
// Error(kInterrupted) is thrown. REQUIRES: jobs >= 1.
void ParallelFor(int jobs, std::size_t count, const StopFlag& stop,
                 const std::function<void(std::size_t)>& task);

}  // namespace uper
