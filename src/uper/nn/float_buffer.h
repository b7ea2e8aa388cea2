#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace uper {

// A fixed number of floats, 64-byte aligned, zero at first. A large buffer asks the system for huge
// pages: the head of a large ensemble is read in strides that would exhaust the TLB. Can be moved,
// but not copied.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(std::size_t size);

  std::size_t size() const { return size_; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data(), size_}; }
  std::span<const float> span() const { return {data(), size_}; }
  float& operator[](std::size_t i) { return data_[i]; }
  float operator[](std::size_t i) const { return data_[i]; }

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::size_t size_ = 0;
  std::unique_ptr<float[], Free> data_;
};

}  // namespace uper
