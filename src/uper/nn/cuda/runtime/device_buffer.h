#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <utility>

#include "uper/nn/cuda/runtime/cuda_error.h"

namespace uper::cuda {

// A fixed number of entries in the GPU's memory, initially zero. Movable, not copyable. Copies from
// and to the host are ordered on the stream; copies of pageable memory block the host.
template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    CheckCuda(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), "cudaMalloc");
    CheckCuda(cudaMemset(data_, 0, bytes()), "cudaMemset");
  }
  explicit DeviceBuffer(std::span<const T> values) : DeviceBuffer(values.size()) {
    if (size_ > 0) {
      CheckCuda(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  T* data() { return data_; }
  const T* data() const { return data_; }

  // REQUIRES: `values` has as many entries as the buffer.
  void Upload(std::span<const T> values, cudaStream_t stream) {
    CheckCuda(cudaMemcpyAsync(data_, values.data(), bytes(), cudaMemcpyHostToDevice, stream),
              "copying to the GPU");
  }
  void Download(std::span<T> values, cudaStream_t stream) const {
    CheckCuda(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream),
              "copying from the GPU");
  }

 private:
  std::size_t size_ = 0;
  T* data_ = nullptr;
};

// Page-locked host memory, initially zero. The GPU copies it without the host's help, and kernels
// can read and write it. The host sees what kernels wrote once it has waited for them.
template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    CheckCuda(cudaMallocHost(reinterpret_cast<void**>(&data_), size * sizeof(T)), "cudaMallocHost");
    for (std::size_t i = 0; i < size; ++i) data_[i] = T{};
  }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~PinnedBuffer() { cudaFreeHost(static_cast<void*>(data_)); }

  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::size_t size_ = 0;
  T* data_ = nullptr;
};

}  // namespace uper::cuda
