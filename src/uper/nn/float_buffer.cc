#include "uper/nn/float_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "uper/base/arithmetic.h"
#include "uper/base/error.h"

namespace uper {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

FloatBuffer::FloatBuffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  const bool large = size * sizeof(float) >= 2 * kHugePage;
  const std::size_t alignment = large ? kHugePage : kCacheLine;
  const std::size_t bytes = CeilDiv(size * sizeof(float), alignment) * alignment;
  void* memory = std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) {
    throw Error(ErrorKind::kResources, "no memory for " + std::to_string(bytes) + " bytes");
  }
  data_.reset(static_cast<float*>(memory));
  if (large)
    madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: if the system refuses, only speed suffers
  std::memset(memory, 0, bytes);
}

void FloatBuffer::Free::operator()(float* memory) const { std::free(memory); }

}  // namespace uper
