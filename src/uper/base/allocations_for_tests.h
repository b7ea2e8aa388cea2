#pragma once

#include <atomic>
#include <cstddef>

namespace uper {

// What operator new of a test program was asked for. Counted if one of its files includes
// replace_new_for_tests.h.
inline std::atomic<std::size_t> allocations{0};
inline std::atomic<std::size_t> largest_allocation{0};  // bytes

template <typename Function>
std::size_t AllocationsDuring(Function&& function) {
  const std::size_t before = allocations;
  function();
  return allocations - before;
}

}  // namespace uper
