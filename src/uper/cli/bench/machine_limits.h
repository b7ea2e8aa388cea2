#pragma once

#include "uper/base/threads/thread_pool.h"

namespace uper::cli {

// The best speeds that the machine reaches, to compare ours with. Each measurement takes some
// tenths of a second.

// FLOP/s of our matrix product on square matrices in the cache, with all threads.
double MeasureProductRate(ThreadPool& pool);
// Bytes/s of a[i] = b[i] + s * c[i] on arrays far larger than the cache: 12 bytes per entry.
double MeasureMemoryRate(ThreadPool& pool);

}  // namespace uper::cli
