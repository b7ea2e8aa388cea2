#include "uper/base/files/md5.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace uper {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kLengthBytes = 8;

using State = std::array<std::uint32_t, 4>;

// floor(2^32 |sin(i + 1)|), i = 0, ..., 63.
std::array<std::uint32_t, 64> MakeSineTable() {
  std::array<std::uint32_t, 64> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint32_t>(
        std::floor(std::ldexp(std::fabs(std::sin(static_cast<double>(i + 1))), 32)));
  }
  return table;
}

// Rotations of the four rounds, each repeated four times.
constexpr int kRotations[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// The round's function of three words, and the word of the block that step i takes.
std::uint32_t Mix(int round, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  switch (round) {
    case 0:
      return (b & c) | (~b & d);
    case 1:
      return (d & b) | (~d & c);
    case 2:
      return b ^ c ^ d;
    default:
      return c ^ (b | ~d);
  }
}
int WordOf(int round, int step) {
  constexpr int kFactor[4] = {1, 5, 3, 7};
  constexpr int kOffset[4] = {0, 1, 5, 0};
  return (kFactor[round] * step + kOffset[round]) % 16;
}

void AddBlock(State& state, const std::byte* block) {
  static const std::array<std::uint32_t, 64> sines = MakeSineTable();
  std::array<std::uint32_t, 16> words;
  static_assert(std::endian::native == std::endian::little, "MD5 reads little-endian words");
  std::memcpy(words.data(), block, kBlockBytes);
  auto [a, b, c, d] = state;
  for (int step = 0; step < 64; ++step) {
    const int round = step / 16;
    const std::uint32_t sum = a + Mix(round, b, c, d) + sines[step] + words[WordOf(round, step)];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kRotations[round][step % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

}  // namespace

Md5Digest Md5(std::span<const std::byte> bytes) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::size_t whole = bytes.size() / kBlockBytes * kBlockBytes;
  for (std::size_t i = 0; i < whole; i += kBlockBytes) AddBlock(state, bytes.data() + i);
  // The rest, a one bit, zeros and the length in bits fill one or two further blocks.
  std::array<std::byte, 2 * kBlockBytes> tail{};
  const std::size_t rest = bytes.size() - whole;
  if (rest > 0) std::memcpy(tail.data(), bytes.data() + whole, rest);
  tail[rest] = std::byte{0x80};
  const std::size_t blocks = rest + 1 + kLengthBytes > kBlockBytes ? 2 : 1;
  const std::uint64_t bits = std::uint64_t{8} * bytes.size();
  std::memcpy(tail.data() + blocks * kBlockBytes - kLengthBytes, &bits, kLengthBytes);
  for (std::size_t i = 0; i < blocks; ++i) AddBlock(state, tail.data() + i * kBlockBytes);
  Md5Digest digest;
  std::memcpy(digest.data(), state.data(), digest.size());
  return digest;
}

std::string Md5Text(const Md5Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace uper
