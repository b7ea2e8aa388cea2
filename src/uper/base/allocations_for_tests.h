#pragma once

#include <atomic>
#include <cstddef>

namespace uper {

// Counters of the memory that a test program requests from operator new. They count only if one
// file of the program includes replace_new_for_tests.h.
inline std::atomic<std::size_t> allocations{0};
inline std::atomic<std::size_t> largest_allocation{0};  // bytes

template <typename Function>
std::size_t AllocationsDuring(Function&& function) {
  const std::size_t before = allocations;
  function();
  return allocations - before;
}

}  // namespace uper
