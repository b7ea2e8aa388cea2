#include "uper/nn/cuda/gemm/double_tile.cuh"
#include "uper/nn/cuda/gemm/gemm_kernel.cuh"

namespace uper {
namespace {

struct Tiles {
  template <int kRows, int kColumns, Along kA, Along kB>
  using Of = DoubleTile<kRows, kColumns, kA, kB>;
};

}  // namespace

void LaunchDoubleProducts(const ProductCall& call, cudaStream_t stream) {
  ProductKernels<Precision::kFp32, Tiles>::Launch(call, stream);
}

}  // namespace uper
