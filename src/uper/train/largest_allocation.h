#pragma once

#include <atomic>
#include <cstddef>

namespace uper {

// The largest number of bytes that was asked of operator new at once since it was last set to 0.
// Counted in the test program of this folder only (largest_allocation_test.cc).
extern std::atomic<std::size_t> largest_allocation;

}  // namespace uper
