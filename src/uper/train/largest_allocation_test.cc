// Replaces operator new of the test program. No tests here: reader_fuzz_test.cc uses it.

#include "uper/train/largest_allocation.h"

#include <cstdlib>
#include <new>

namespace uper {
std::atomic<std::size_t> largest_allocation{0};
}  // namespace uper

namespace {

void* Allocate(std::size_t size) {
  std::size_t former = uper::largest_allocation;
  while (size > former && !uper::largest_allocation.compare_exchange_weak(former, size)) {
  }
  return std::malloc(size);
}

}  // namespace

void* operator new(std::size_t size) {
  if (void* memory = Allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
