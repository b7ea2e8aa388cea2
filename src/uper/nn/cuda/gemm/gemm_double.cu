#include "uper/nn/cuda/gemm/double_tile.cuh"
#include "uper/nn/cuda/gemm/gemm_kernel.cuh"

namespace uper::cuda {
namespace {

struct Tiles {
  template <int kRows, int kColumns, Contiguous kA, Contiguous kB>
  using Of = DoubleTile<kRows, kColumns, kA, kB>;
};

}  // namespace

void LaunchDoubleGemms(const GemmBatch& call, cudaStream_t stream) {
  GemmKernels<Precision::kFp32, Tiles>::Launch(call, stream);
}

}  // namespace uper::cuda
