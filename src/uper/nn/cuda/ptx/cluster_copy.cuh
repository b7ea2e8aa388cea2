#pragma once

#include "uper/nn/cuda/ptx/bulk_copy.cuh"

namespace uper::cuda {

// Copies between blocks of a cluster: each block can access the shared memory of the others.

// A barrier of all threads of the cluster, in two halves. It makes no earlier writes visible except
// ArrivalBarriers after FenceArrivals(), because waiting for memory would take far longer.
__device__ inline void ArriveAtCluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void AwaitCluster() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// The address of the same variable in another block.
__device__ inline unsigned AddressIn(int rank, const void* shared) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(SharedAddress(shared)), "r"(rank));
  return address;
}

// Copies to the same place of another block and signals that block's barrier. See FenceStores().
__device__ inline void StartCopy(int rank, const void* from, unsigned bytes,
                                 const ArrivalBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(AddressIn(rank, from)),
      "r"(SharedAddress(from)), "r"(bytes), "r"(AddressIn(rank, barrier.state()))
      : "memory");
}

}  // namespace uper::cuda
