#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uper/base/files/atomic_file.h"

namespace uper {

// Element types of an array in an .npz file.
template <typename T>
concept NpyElement =
    std::same_as<T, std::uint8_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, float> || std::same_as<T, double>;

// Shape of an array; empty for a single number.
using NpyShape = std::vector<std::size_t>;

// An .npz file as numpy.load() reads it: an uncompressed zip archive with one .npy member per
// array. Add() writes an array at once; Commit() gives the file its name (see AtomicFile). All
// arrays together must stay below 4 GiB, the limit of a plain zip archive: beyond that Add throws
// Error(kUsage). The same arrays give the same bytes. Not thread-safe.
class NpzWriter {
 public:
  explicit NpzWriter(std::filesystem::path path) : file_(std::move(path)) {}

  // A row-major array. Names may contain '/'; each is used once. REQUIRES: values.size() is the
  // product of the shape.
  template <NpyElement T>
  void Add(std::string_view name, std::span<const T> values, const NpyShape& shape) {
    AddBytes(name, TypeCode<T>(), std::as_bytes(values), sizeof(T), shape);
  }
  template <NpyElement T>
  void Add(std::string_view name, const std::vector<T>& values, const NpyShape& shape) {
    Add(name, std::span(values), shape);
  }
  template <NpyElement T>
  void AddNumber(std::string_view name, T value) {
    Add(name, std::span<const T>(&value, 1), {});
  }
  // A single string. REQUIRES: ASCII, not empty.
  void AddText(std::string_view name, std::string_view text);

  // Writes the archive's directory and gives the file its name. Nothing can be added afterwards.
  void Commit();

 private:
  struct Member {
    std::string name;  // with ".npy"
    std::uint32_t checksum = 0;
    std::uint32_t bytes = 0;
    std::uint32_t offset = 0;  // of its local header
  };

  template <NpyElement T>
  static constexpr std::string_view TypeCode() {
    if constexpr (std::same_as<T, std::uint8_t>) return "|u1";
    if constexpr (std::same_as<T, std::int32_t>) return "<i4";
    if constexpr (std::same_as<T, std::int64_t>) return "<i8";
    if constexpr (std::same_as<T, float>) return "<f4";
    if constexpr (std::same_as<T, double>) return "<f8";
  }

  void AddBytes(std::string_view name, std::string_view type, std::span<const std::byte> values,
                std::size_t element_bytes, const NpyShape& shape);
  void WriteMember(std::string_view name, std::string_view header,
                   std::span<const std::byte> values);
  void Write(std::string_view bytes);

  AtomicFile file_;
  std::vector<Member> members_;
  std::uint64_t written_ = 0;  // bytes so far
};

// CRC-32 as in zip archives (polynomial 0xEDB88320), continued from `crc` of the bytes before.
std::uint32_t Crc32(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace uper
