#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace uper {

// Starts threads that run work(0), ..., work(count - 1). If one cannot be started, it calls `stop`,
// which must make the others end, waits for them and throws Error(kResources).
std::vector<std::jthread> StartThreads(int count, const std::function<void(int)>& work,
                                       const std::function<void()>& stop);

}  // namespace uper
