#include "uper/nn/cuda/gemm/gemm_kernel.cuh"
#include "uper/nn/cuda/gemm/mma_tile.cuh"

namespace uper::cuda {
namespace {

struct Tiles {
  template <int kRows, int kColumns, Contiguous kA, Contiguous kB>
  using Of = MmaTile<kRows, kColumns, kA, kB, /*kTerms=*/1>;
};

}  // namespace

void LaunchTf32Gemms(const GemmBatch& call, cudaStream_t stream) {
  GemmKernels<Precision::kTf32, Tiles>::Launch(call, stream);
}

}  // namespace uper::cuda
