#include "uper/base/files/crc32c.h"

#include <array>
#include <cstring>

namespace uper {
namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

std::uint32_t ByTable(std::span<const std::byte> bytes, std::uint32_t crc) {
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)
// One instruction per eight bytes: replay memories of gigabytes are saved with checksums.
__attribute__((target("sse4.2"))) std::uint32_t ByInstruction(std::span<const std::byte> bytes,
                                                              std::uint32_t crc) {
  std::uint64_t wide = crc;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return ByTable(bytes.subspan(i), static_cast<std::uint32_t>(wide));
}
#endif

}  // namespace

std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~ByInstruction(bytes, ~before);
#endif
  return ~ByTable(bytes, ~before);
}

}  // namespace uper
