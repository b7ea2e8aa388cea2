#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace uper {

// Threads that run work(0), ..., work(count - 1). If one cannot be started, `stop` is called, which
// must make the others end, and Error(kResources) is thrown once they have.
std::vector<std::jthread> StartThreads(int count, const std::function<void(int)>& work,
                                       const std::function<void()>& stop);

}  // namespace uper
