#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace uper {

// CRC-32C (Castagnoli polynomial, reflected), as TFRecord files use it. `before` is the checksum of
// the bytes before these, so that a long text can be checked in pieces.
std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
inline std::uint32_t Crc32c(std::string_view bytes) {
  return Crc32c(std::as_bytes(std::span(bytes)));
}

}  // namespace uper
