#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "uper/base/error.h"

namespace uper::checkpoint {

// Tensors in the safetensors format: uint64 length of the header (little-endian), the header as
// JSON {name: {dtype, shape, data_offsets}}, then the data, row-major and little-endian.

enum class TensorElement {
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint64,
  kUint32,
  kUint16,
  kUint8,
  kBool,
};

// A view of a tensor; it does not own the memory.
struct StoredTensor {
  TensorElement element = TensorElement::kFloat32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

using TensorMap = std::map<std::string, StoredTensor>;

// Limits of a file, so that reading a malicious one takes bounded memory.
inline constexpr std::uint64_t kMaxTensorHeaderBytes = std::uint64_t{16} << 20;
inline constexpr std::size_t kMaxTensors = 65'536;
inline constexpr std::size_t kMaxTensorRank = 8;

std::size_t ElementBytes(TensorElement element);
const char* ElementName(TensorElement element);  // "F32"

// Encodes a file. Tensors with wide elements come first, so that all are aligned; the bytes depend
// on the content alone. Throws Error(kInternal) if a name or shape is not valid (below).
std::vector<std::byte> EncodeSafetensors(const TensorMap& tensors);
// The same, into memory that the caller reuses.
void EncodeSafetensors(const TensorMap& tensors, std::vector<std::byte>& file);

// The tensors of a file, as views into it. Throws Error(kCorrupt), its message starting with
// `what`, if a limit above is exceeded or the header is invalid. A name must consist of 1 to 200 of
// A-Z a-z 0-9 _ . / : -. A dtype must be of the list above, and a length must match its shape. The
// data must tile the rest of the file without gap or overlap.
TensorMap ParseSafetensors(std::span<const std::byte> file, const std::string& what);

template <typename T>
constexpr TensorElement ElementOf() {
  if constexpr (std::is_same_v<T, double>) return TensorElement::kFloat64;
  if constexpr (std::is_same_v<T, float>) return TensorElement::kFloat32;
  if constexpr (std::is_same_v<T, std::int64_t>) return TensorElement::kInt64;
  if constexpr (std::is_same_v<T, std::int32_t>) return TensorElement::kInt32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return TensorElement::kUint64;
  if constexpr (std::is_same_v<T, std::uint32_t>) return TensorElement::kUint32;
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>) {
    return TensorElement::kUint8;
  }
}

// A view of an array. REQUIRES: shape multiplies to values.size(); without one it is [size].
template <typename T>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved; not seen in a template
StoredTensor AsTensor(std::span<const T> values, std::vector<std::uint64_t> shape) {
  return {.element = ElementOf<T>(), .shape = std::move(shape), .bytes = std::as_bytes(values)};
}
template <typename T>
StoredTensor AsTensor(std::span<const T> values) {
  return AsTensor(values, {values.size()});
}

// The named tensor. Throws Error(kCorrupt) if it does not exist or has another element type.
const StoredTensor& FindTensor(const TensorMap& tensors, const std::string& name,
                               TensorElement element);

// Copies the named tensor. Throws Error(kCorrupt) unless it has exactly `out.size()` elements.
template <typename T>
void CopyTensor(const TensorMap& tensors, const std::string& name, std::span<T> out) {
  const StoredTensor& tensor = FindTensor(tensors, name, ElementOf<T>());
  if (tensor.bytes.size() != out.size_bytes()) {
    throw Error(ErrorKind::kCorrupt, "stored tensor '" + name + "' has another size");
  }
  if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), out.size_bytes());
}

// The same, whatever its size.
template <typename T>
std::vector<T> TensorValues(const TensorMap& tensors, const std::string& name) {
  std::vector<T> values(FindTensor(tensors, name, ElementOf<T>()).bytes.size() / sizeof(T));
  CopyTensor(tensors, name, std::span<T>(values));
  return values;
}

}  // namespace uper::checkpoint
