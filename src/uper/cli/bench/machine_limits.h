#pragma once

#include "uper/base/threads/thread_pool.h"

namespace uper {

// What the machine can do at the best, to hold our speed against. Both take some tenths of a
// second.

// FLOP/s of our own product kernel on square matrices that stay in the cache, all threads at once.
double MeasureProductRate(ThreadPool& pool);
// Bytes/s of a[i] = b[i] + s * c[i] on arrays far larger than the cache: 12 bytes an entry.
double MeasureMemoryRate(ThreadPool& pool);

}  // namespace uper
