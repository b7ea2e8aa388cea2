#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace uper::cuda {

// Bulk copies between global and shared memory by the copy engine of a multiprocessor: one thread
// requests many bytes. Addresses and sizes are multiples of 16 bytes.

__device__ inline unsigned SharedAddress(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// Counts arrivals of threads and of bytes. A phase ends when everything expected has arrived;
// phases are numbered from 0.
class ArrivalBarrier {
 public:
  // Called by one thread, followed by FenceArrivals() and a barrier of all users. `count`: calls of
  // Expect() and Arrive() per phase.
  __device__ void Initialize(unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&state_)), "r"(count)
                 : "memory");
  }
  __device__ void Arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(&state_))
                 : "memory");
  }
  __device__ void Expect(unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&state_)),
        "r"(bytes)
        : "memory");
  }
  __device__ void Wait(int phase) const {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{\n"
          ".reg .pred done;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
          "selp.u32 %0, 1, 0, done;\n"
          "}\n"
          : "=r"(done)
          : "r"(SharedAddress(&state_)), "r"(static_cast<unsigned>(phase & 1))
          : "memory");
    }
  }
  __device__ const std::uint64_t* state() const { return &state_; }

 private:
  std::uint64_t state_;
};

__device__ inline void FenceArrivals() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// How the L2 cache treats data that are read.
enum class CacheHint { kNormal, kEvictFirst };

__device__ inline std::uint64_t CachePolicy(CacheHint keep) {
  std::uint64_t policy;
  if (keep == CacheHint::kEvictFirst) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}

__device__ inline void StartLoad(void* shared, const void* global, unsigned bytes,
                                 std::uint64_t cache_policy, const ArrivalBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1], %2, [%3], %4;" ::"r"(SharedAddress(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(SharedAddress(barrier.state())),
      "l"(cache_policy)
      : "memory");
}

// Makes what threads wrote to shared memory, before this call and a barrier, visible to bulk copies
// that start later.
__device__ inline void FenceStores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The thread's stores up to this call form one group.
__device__ inline void StartStore(void* global, const void* shared, unsigned bytes,
                                  std::uint64_t cache_policy) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(
          __cvta_generic_to_global(global)),
      "r"(SharedAddress(shared)), "r"(bytes), "l"(cache_policy)
      : "memory");
}
__device__ inline void CommitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the thread's stores have been read from shared memory. Needed before that memory is
// overwritten and before the block ends.
__device__ inline void AwaitStoresRead() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace uper::cuda
