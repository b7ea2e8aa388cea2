#include "uper/base/files/byte_stream.h"

#include "uper/base/error.h"

namespace uper {

void ByteWriter::WriteBlock(std::span<const std::byte> block) {
  Write<std::uint64_t>(block.size());
  WriteRaw(block);
}

void ByteWriter::WriteRaw(std::span<const std::byte> raw) {
  bytes_.insert(bytes_.end(), raw.begin(), raw.end());
}

std::span<const std::byte> ByteReader::Take(std::size_t count) {
  if (count > rest_.size()) {
    throw Error(ErrorKind::kCorrupt, "saved state ends too early: " + std::to_string(count) +
                                         " bytes expected, " + std::to_string(rest_.size()) +
                                         " left");
  }
  const auto taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

std::span<const std::byte> ByteReader::ReadBlock() { return Take(Read<std::uint64_t>()); }

std::string ByteReader::ReadText() {
  const auto block = ReadBlock();
  return {reinterpret_cast<const char*>(block.data()), block.size()};
}

void ByteReader::ExpectEnd() const {
  if (rest_.empty()) return;
  throw Error(ErrorKind::kCorrupt,
              "saved state is too long by " + std::to_string(rest_.size()) + " bytes");
}

void ByteReader::FailRange() {
  throw Error(ErrorKind::kCorrupt, "saved state holds a value that is out of range");
}

}  // namespace uper
