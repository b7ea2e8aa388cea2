#include <cstdint>

#include "uper/nn/cuda/observations/observation_kernels.h"
#include "uper/nn/cuda/runtime/cuda_error.h"

namespace uper::cuda {
namespace {

constexpr int kThreads = 256;

// One thread per cell of an image, with all its channels.
template <typename T>
__global__ void ConvertKernel(InputSpec input, const T* from, int count, float* to) {
  const int cells = input.height * input.width;
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= static_cast<long long>(count) * cells) return;
  const bool frames = input.layout == InputLayout::kPlanes;
  const long long image = i / cells * cells * input.channels;
  const int cell = static_cast<int>(i % cells);
  const T* first = from + image + (frames ? cell : cell * input.channels);
  const int step = frames ? cells : 1;
  float* out = to + i * input.channels;
  if (input.channels == 4) {
    *reinterpret_cast<float4*>(out) = make_float4(
        input.scale * static_cast<float>(first[0]), input.scale * static_cast<float>(first[step]),
        input.scale * static_cast<float>(first[2 * step]),
        input.scale * static_cast<float>(first[3 * step]));
    return;
  }
  for (int c = 0; c < input.channels; ++c) {
    out[c] = input.scale * static_cast<float>(first[c * step]);
  }
}

}  // namespace

void LaunchConvertObservations(const InputSpec& input, const void* from, int count, float* to,
                               cudaStream_t stream) {
  const long long cells = static_cast<long long>(count) * input.height * input.width;
  const int blocks = static_cast<int>((cells + kThreads - 1) / kThreads);
  if (input.type == InputType::kUint8) {
    ConvertKernel<<<blocks, kThreads, 0, stream>>>(input, static_cast<const std::uint8_t*>(from),
                                                   count, to);
  } else {
    ConvertKernel<<<blocks, kThreads, 0, stream>>>(input, static_cast<const float*>(from), count,
                                                   to);
  }
  CheckCuda(cudaGetLastError(), "observations");
}

}  // namespace uper::cuda
