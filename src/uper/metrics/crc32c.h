#pragma once

#include <cstdint>
#include <string_view>

namespace uper {

// CRC-32C (Castagnoli polynomial, reflected), as TFRecord files use it.
std::uint32_t Crc32c(std::string_view bytes);

}  // namespace uper
