#include "uper/nn/cuda/gemm/gemm_kernel.cuh"
#include "uper/nn/cuda/gemm/mma_tile.cuh"

namespace uper {
namespace {

struct Tiles {
  template <int kRows, int kColumns, Along kA, Along kB>
  using Of = MmaTile<kRows, kColumns, kA, kB, /*kTerms=*/1>;
};

}  // namespace

void LaunchTf32Products(const ProductCall& call, cudaStream_t stream) {
  ProductKernels<Precision::kTf32, Tiles>::Launch(call, stream);
}

}  // namespace uper
