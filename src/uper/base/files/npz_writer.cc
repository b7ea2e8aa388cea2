#include "uper/base/files/npz_writer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"

namespace uper {
namespace {

// Table t, entry b: the checksum of byte b followed by t zero bytes, so that eight bytes are
// folded in at once.
using Crc32Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Crc32Tables kCrc32Tables = [] {
  Crc32Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t t = 1; t < tables.size(); ++t) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[t - 1][byte];
      tables[t][byte] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}();

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t kZipVersion = 20;         // 2.0: plain members
constexpr std::uint16_t kUtf8Names = 1 << 11;     // general purpose flag
constexpr std::uint16_t kZipDate = (1 << 5) | 1;  // 1980-01-01, the first day that zip can express
constexpr std::size_t kNpyAlignment = 64;         // of the data, from the start of the member
constexpr std::size_t kMaxMembers = 65535;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// As Python writes a tuple: (), (3,), (2, 3).
std::string ShapeText(const NpyShape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

// Version 1.0: magic, length, then a Python literal that is padded with blanks to the alignment.
std::string NpyHeader(std::string_view type, const NpyShape& shape) {
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  std::string literal = "{'descr': '" + std::string(type) +
                        "', 'fortran_order': False, 'shape': " + ShapeText(shape) + ", }";
  const std::size_t fixed = kMagic.size() + 2;
  const std::size_t used = fixed + literal.size() + 1;
  literal.append((kNpyAlignment - used % kNpyAlignment) % kNpyAlignment, ' ');
  literal += '\n';
  UPER_CHECK(literal.size() <= 65535, "an array of fewer dimensions");
  std::string header(kMagic);
  header += static_cast<char>(literal.size() & 0xFF);
  header += static_cast<char>(literal.size() >> 8);
  return header + literal;
}

// The fields that local headers share with the directory's entries.
struct ZipFields {
  std::uint32_t checksum;
  std::uint32_t bytes;
  std::size_t name_bytes;
};

void WriteZipFields(ByteWriter& writer, const ZipFields& fields) {
  writer.Write(kZipVersion);
  writer.Write(kUtf8Names);
  writer.Write(std::uint16_t{0});  // not compressed
  writer.Write(std::uint16_t{0});  // time
  writer.Write(kZipDate);
  writer.Write(fields.checksum);
  writer.Write(fields.bytes);  // stored
  writer.Write(fields.bytes);  // of the original
  writer.Write(static_cast<std::uint16_t>(fields.name_bytes));
  writer.Write(std::uint16_t{0});  // no extra field
}

}  // namespace

std::uint32_t Crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  crc = ~crc;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint32_t next = 0;
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const std::uint32_t folded = lane < 4 ? (crc >> (8 * lane)) & 0xFF : 0;
      next ^= kCrc32Tables[7 - lane][byte_at(i + lane) ^ folded];
    }
    crc = next;
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kCrc32Tables[0][(crc ^ byte_at(i)) & 0xFF];
  return ~crc;
}

void NpzWriter::AddText(std::string_view name, std::string_view text) {
  UPER_CHECK(!text.empty(), "numpy has no empty strings");
  std::vector<std::int32_t> characters;  // numpy's strings are UTF-32
  for (const char character : text) {
    UPER_CHECK(character > 0, "only ASCII text");
    characters.push_back(character);
  }
  WriteMember(name, NpyHeader("<U" + std::to_string(text.size()), {}),
              std::as_bytes(std::span(characters)));
}

void NpzWriter::AddBytes(std::string_view name, std::string_view type,
                         std::span<const std::byte> values, std::size_t element_bytes,
                         const NpyShape& shape) {
  const std::size_t count =
      std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  UPER_CHECK(values.size() == count * element_bytes, "as many values as the shape says");
  WriteMember(name, NpyHeader(type, shape), values);
}

void NpzWriter::WriteMember(std::string_view name, std::string_view header,
                            std::span<const std::byte> values) {
  const std::string file_name = std::string(name) + ".npy";
  UPER_CHECK(!name.empty() && file_name.size() < 65536 && members_.size() < kMaxMembers,
             "a short name, and not too many arrays");
  UPER_CHECK(std::none_of(members_.begin(), members_.end(),
                          [&](const Member& member) { return member.name == file_name; }),
             "a name is used once");
  const std::uint64_t bytes = header.size() + values.size();
  if (written_ + bytes + file_name.size() >= kMaxBytes) {
    throw Error(ErrorKind::kUsage,
                file_.path().string() + ": an .npz file holds at most 4 GiB; ask for less data");
  }
  members_.push_back({.name = file_name,
                      .checksum = Crc32(values, Crc32(Bytes(header))),
                      .bytes = static_cast<std::uint32_t>(bytes),
                      .offset = static_cast<std::uint32_t>(written_)});
  std::vector<std::byte> local;
  ByteWriter writer(local);
  writer.Write(std::uint32_t{0x04034B50});  // "PK\3\4"
  WriteZipFields(writer, {members_.back().checksum, members_.back().bytes, file_name.size()});
  Write(Text(local));
  Write(file_name);
  Write(header);
  Write(Text(values));
}

void NpzWriter::Commit() {
  std::vector<std::byte> directory;
  ByteWriter writer(directory);
  for (const Member& member : members_) {
    writer.Write(std::uint32_t{0x02014B50});  // "PK\1\2"
    writer.Write(kZipVersion);                // made by
    WriteZipFields(writer, {member.checksum, member.bytes, member.name.size()});
    writer.Write(std::uint16_t{0});  // no comment
    writer.Write(std::uint16_t{0});  // disk 0
    writer.Write(std::uint16_t{0});  // internal attributes
    writer.Write(std::uint32_t{0});  // external attributes
    writer.Write(member.offset);
    const auto name = Bytes(member.name);
    directory.insert(directory.end(), name.begin(), name.end());
  }
  const auto bytes = static_cast<std::uint32_t>(directory.size());
  writer.Write(std::uint32_t{0x06054B50});  // "PK\5\6"
  writer.Write(std::uint32_t{0});           // disk 0, and the directory's disk 0
  writer.Write(static_cast<std::uint16_t>(members_.size()));
  writer.Write(static_cast<std::uint16_t>(members_.size()));
  writer.Write(bytes);
  writer.Write(static_cast<std::uint32_t>(written_));
  writer.Write(std::uint16_t{0});  // no comment
  Write(Text(directory));
  file_.Commit();
}

void NpzWriter::Write(std::string_view bytes) {
  file_.Write(bytes);
  written_ += bytes.size();
}

}  // namespace uper
