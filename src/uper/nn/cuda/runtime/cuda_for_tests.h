#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <vector>

#include "uper/nn/cuda/runtime/device_buffer.h"
#include "uper/nn/gpu.h"
#include "uper/nn/precision.h"

namespace uper::cuda {

// Tests that need a GPU; they are skipped, and counted as skipped, where there is none.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    static const GpuInfo gpu = QueryGpu();
    if (!gpu.usable) GTEST_SKIP() << "no GPU: " << gpu.unusable_because;
  }
};

inline constexpr Precision kAllPrecisions[] = {Precision::kFp32, Precision::kTf32,
                                               Precision::kTf32x3};

template <typename T>
DeviceBuffer<T> OnGpu(const std::vector<T>& values) {
  return DeviceBuffer<T>(std::span<const T>(values));
}

// Waits for all kernels.
template <typename T>
std::vector<T> FromGpu(const DeviceBuffer<T>& buffer) {
  std::vector<T> values(buffer.size());
  CheckCuda(cudaDeviceSynchronize(), "test");
  buffer.Download(values, nullptr);
  CheckCuda(cudaDeviceSynchronize(), "test");
  return values;
}

// Entries that are not written stay NaN.
inline DeviceBuffer<float> Poisoned(std::size_t size) {
  return OnGpu(std::vector<float>(size, std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace uper::cuda
