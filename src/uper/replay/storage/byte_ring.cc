#include "uper/replay/storage/byte_ring.h"

#include "uper/base/check.h"

namespace uper {

ByteRing::ByteRing(std::size_t capacity, std::size_t record_bytes)
    : ring_{capacity},
      record_bytes_(record_bytes),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity * record_bytes)) {
  UPER_CHECK(capacity >= 1 && record_bytes >= 1, "a storage needs records");
}

void ByteRing::Put(std::uint64_t id, std::span<const std::byte> record) {
  UPER_CHECK(record.size() == record_bytes_, "a record of the wrong size");
  std::memcpy(At(id), record.data(), record_bytes_);
}

std::size_t ByteRing::RowsIn(std::size_t bytes) const {
  UPER_CHECK(bytes % record_bytes_ == 0, "not a whole number of records");
  UPER_CHECK(bytes / record_bytes_ <= capacity(), "more records than there are slots");
  return bytes / record_bytes_;
}

void ByteRing::CopyOut(std::uint64_t first, std::span<std::byte> rows) const {
  const std::size_t count = RowsIn(rows.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(rows.data() + i * record_bytes_, At(first + i), record_bytes_);
  }
}

void ByteRing::CopyIn(std::uint64_t first, std::span<const std::byte> rows) {
  const std::size_t count = RowsIn(rows.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(At(first + i), rows.data() + i * record_bytes_, record_bytes_);
  }
}

}  // namespace uper
