#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uper::atari {

// Sixteen numbers that are processed together, as vector types of the compiler. It generates the
// best instructions of the CPU for which the surrounding function is compiled.
inline constexpr std::size_t kLanes = 16;
using ByteLanes = std::uint8_t __attribute__((vector_size(kLanes)));
// Eight make one register of AVX2.
inline constexpr std::size_t kWideLanes = 8;
using FewBytes = std::uint8_t __attribute__((vector_size(kWideLanes)));
using FewShorts = std::uint16_t __attribute__((vector_size(2 * kWideLanes)));
using IntLanes = std::int32_t __attribute__((vector_size(4 * kWideLanes)));
using FloatLanes = float __attribute__((vector_size(4 * kWideLanes)));

// For small functions that must be inlined into a function for a certain CPU.
#define UPER_INLINE inline __attribute__((always_inline))

UPER_INLINE void LoadLanes(const std::uint8_t* from, ByteLanes& lanes) {
  std::memcpy(&lanes, from, kLanes);
}
UPER_INLINE void StoreLanes(const ByteLanes& lanes, std::uint8_t* to) {
  std::memcpy(to, &lanes, kLanes);
}

UPER_INLINE void LoadInts(const std::uint8_t* from, IntLanes& lanes) {
  FewBytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  // In two steps, because the compiler has an instruction for each.
  lanes = __builtin_convertvector(__builtin_convertvector(bytes, FewShorts), IntLanes);
}
// REQUIRES: lanes from 0 to 255.
UPER_INLINE void StoreInts(const IntLanes& lanes, std::uint8_t* to) {
  const FewBytes bytes = __builtin_convertvector(lanes, FewBytes);
  std::memcpy(to, &bytes, sizeof(bytes));
}

// A table of 128 bytes.
struct LaneTable {
  std::array<ByteLanes, 8> parts;
};

// Each lane: table[lane]. REQUIRES: lanes below 128.
UPER_INLINE void LookUp(const LaneTable& table, ByteLanes& lanes) {
#if defined(__clang__)  // has no shuffle by variable lanes
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = table.parts[lanes[i] / 16][lanes[i] % 16];
#else
  const ByteLanes low = lanes & 15;
  const ByteLanes high = lanes >> 4;
  lanes = ByteLanes{};
  for (std::size_t part = 0; part < table.parts.size(); ++part) {
    const auto here = reinterpret_cast<ByteLanes>(high == static_cast<std::uint8_t>(part));
    lanes |= __builtin_shuffle(table.parts[part], low) & here;
  }
#endif
}

// out[j][i] = in[i][j] for a square of 16 x 16 bytes; strides in bytes. Each of the four rounds
// interleaves the first half of the rows with the second.
UPER_INLINE void TransposeSquare(const std::uint8_t* in, std::size_t in_stride, std::uint8_t* out,
                                 std::size_t out_stride) {
  ByteLanes rows[kLanes], next[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) LoadLanes(in + i * in_stride, rows[i]);
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < kLanes / 2; ++i) {
      const ByteLanes a = rows[i];
      const ByteLanes b = rows[i + kLanes / 2];
      next[2 * i] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    for (std::size_t i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
  for (std::size_t i = 0; i < kLanes; ++i) StoreLanes(rows[i], out + i * out_stride);
}

}  // namespace uper::atari
