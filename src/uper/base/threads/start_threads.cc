#include "uper/base/threads/start_threads.h"

#include <string>
#include <system_error>

#include "uper/base/error.h"

namespace uper {

std::vector<std::jthread> StartThreads(int count, const std::function<void(int)>& work,
                                       const std::function<void()>& stop) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([work, i] { work(i); });
  } catch (const std::system_error& error) {
    stop();
    // The numbers include the caller's thread.
    throw Error(ErrorKind::kResources,
                "only " + std::to_string(threads.size() + 1) + " of " + std::to_string(count + 1) +
                    " threads could be started (" + error.what() + "): use fewer");
  }
  return threads;
}

}  // namespace uper
