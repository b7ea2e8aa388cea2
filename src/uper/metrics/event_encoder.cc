#include "uper/metrics/event_encoder.h"

#include <bit>
#include <cstring>

#include "uper/base/files/crc32c.h"

namespace uper {
namespace {

// Field numbers of tensorflow/core/util/event.proto and summary.proto.
constexpr int kEventWallTime = 1;
constexpr int kEventStep = 2;
constexpr int kEventFileVersion = 3;
constexpr int kEventSummary = 5;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1;
constexpr int kValueSimpleValue = 2;

// Wire types of protocol buffers.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kCrcBytes = 4;

template <typename Unsigned>
void AppendFixed(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) out += static_cast<char>(value >> (8 * i));
}

void AppendVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendTag(std::string& out, int field, int kind) {
  AppendVarint(out, static_cast<std::uint64_t>(field << 3 | kind));
}

void AppendBytes(std::string& out, int field, std::string_view bytes) {
  AppendTag(out, field, kBytes);
  AppendVarint(out, bytes.size());
  out += bytes;
}

std::string EventStart(double wall_seconds) {
  std::string event;
  AppendTag(event, kEventWallTime, kFixed64);
  AppendFixed(event, std::bit_cast<std::uint64_t>(wall_seconds));
  return event;
}

std::string EncodeScalar(const TaggedScalar& scalar) {
  std::string value;
  AppendBytes(value, kValueTag, scalar.tag);
  AppendTag(value, kValueSimpleValue, kFixed32);
  AppendFixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
  return value;
}

// TFRecord rotates and shifts checksums, because a CRC of data that contains its CRC is useless.
std::uint32_t MaskedCrc(std::string_view bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xA282EAD8U;
}

std::uint64_t ReadFixed(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// Length of the first record, or 0 if it is incomplete or damaged.
std::size_t RecordBytes(std::string_view bytes) {
  constexpr std::size_t kFrame = kLengthBytes + 2 * kCrcBytes;
  if (bytes.size() < kFrame) return 0;
  const std::string_view length_bytes = bytes.substr(0, kLengthBytes);
  const std::uint64_t length = ReadFixed(length_bytes);
  if (length > bytes.size() - kFrame) return 0;
  const std::size_t data_at = kLengthBytes + kCrcBytes;
  const bool sound = ReadFixed(bytes.substr(kLengthBytes, kCrcBytes)) == MaskedCrc(length_bytes) &&
                     ReadFixed(bytes.substr(data_at + length, kCrcBytes)) ==
                         MaskedCrc(bytes.substr(data_at, length));
  return sound ? length + kFrame : 0;
}

}  // namespace

std::string EventFileHeader(double wall_seconds) {
  std::string event = EventStart(wall_seconds);
  AppendBytes(event, kEventFileVersion, "brain.Event:2");
  return TfRecord(event);
}

std::string ScalarEvent(double wall_seconds, std::int64_t step,
                        std::span<const TaggedScalar> scalars) {
  std::string event = EventStart(wall_seconds);
  AppendTag(event, kEventStep, kVarint);
  AppendVarint(event, static_cast<std::uint64_t>(step));
  std::string summary;
  for (const TaggedScalar& scalar : scalars) {
    AppendBytes(summary, kSummaryValue, EncodeScalar(scalar));
  }
  AppendBytes(event, kEventSummary, summary);
  return TfRecord(event);
}

std::string TfRecord(std::string_view data) {
  std::string record;
  AppendFixed(record, std::uint64_t{data.size()});
  AppendFixed(record, MaskedCrc(record));
  record += data;
  AppendFixed(record, MaskedCrc(data));
  return record;
}

std::size_t WholeTfRecords(std::string_view bytes) {
  std::size_t end = 0;
  while (const std::size_t record = RecordBytes(bytes.substr(end))) end += record;
  return end;
}

}  // namespace uper
