#include "uper/nn/cuda/double_tile.cuh"
#include "uper/nn/cuda/product_kernel.cuh"

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
