#pragma once

// Replaces operator new of a test program by one that counts. Exactly one file of it includes this.

#include <cstdlib>
#include <new>

#include "uper/base/allocations_for_tests.h"

namespace uper {

inline void* CountedAllocation(std::size_t size) {
  ++allocations;
  std::size_t former = largest_allocation;
  while (size > former && !largest_allocation.compare_exchange_weak(former, size)) {
  }
  return std::malloc(size);
}

}  // namespace uper

// Not inlined, because the compiler would take free() for a deallocation that does not match new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = uper::CountedAllocation(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return uper::CountedAllocation(size);
}
void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
