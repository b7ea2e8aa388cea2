#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace uper {

// The types that the two classes below write and read: bools, integers of a fixed width and IEEE
// numbers. They are stored as little-endian bytes without padding, so every machine reads a saved
// state alike.
template <typename T>
concept ByteStreamable = std::integral<T> || std::floating_point<T>;

static_assert(std::endian::native == std::endian::little,
              "saved states are little-endian; a big-endian machine needs a swap here");

// Appends values to the caller's byte vector, which must outlive the writer. Not thread-safe.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  template <ByteStreamable T>
  void Write(T value) {
    WriteRaw(std::as_bytes(std::span(&value, 1)));
  }
  // The length (64 bits), then the bytes.
  void WriteBlock(std::span<const std::byte> block);
  void WriteText(std::string_view text) { WriteBlock(std::as_bytes(std::span(text))); }

 private:
  void WriteRaw(std::span<const std::byte> raw);

  std::vector<std::byte>& bytes_;
};

// Reads the values that a ByteWriter wrote, in the same order. The bytes may come from a damaged
// file: an impossible value throws Error(kCorrupt), and no read goes beyond the span. The span must
// outlive the reader. Not thread-safe.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <ByteStreamable T>
  T Read() {
    if constexpr (std::is_same_v<T, bool>) {
      return ReadInRange<std::uint8_t>(0, 1) != 0;  // any other byte is no bool in C++
    } else {
      T value;
      std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
      return value;
    }
  }
  // A number that must lie in [smallest, largest].
  template <ByteStreamable T>
  T ReadInRange(T smallest, T largest) {
    const T value = Read<T>();
    if (!(smallest <= value && value <= largest)) FailRange();
    return value;
  }
  // The bytes of WriteBlock(); they live as long as the span given at construction.
  std::span<const std::byte> ReadBlock();
  std::string ReadText();

  std::size_t remaining() const { return rest_.size(); }
  // Throws Error(kCorrupt) unless all bytes have been read.
  void ExpectEnd() const;

 private:
  std::span<const std::byte> Take(std::size_t count);
  [[noreturn]] static void FailRange();

  std::span<const std::byte> rest_;
};

}  // namespace uper
