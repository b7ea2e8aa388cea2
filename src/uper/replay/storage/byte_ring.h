#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

#include "uper/replay/ring.h"

namespace uper {

// Fixed-size byte records by id, in the slots of a Ring. The replay buffer beside it decides which
// ids are live. A record never changes once written, so a range of ids can be saved as an immutable
// segment (CopyOut) and put back (CopyIn). Memory is reserved at construction and becomes resident
// as it is filled. O(record_bytes) per call. Not thread-safe.
class ByteRing {
 public:
  // REQUIRES: capacity >= 1, record_bytes >= 1.
  ByteRing(std::size_t capacity, std::size_t record_bytes);

  std::size_t capacity() const { return ring_.capacity; }
  std::size_t record_bytes() const { return record_bytes_; }

  // REQUIRES: a record of record_bytes().
  void Put(std::uint64_t id, std::span<const std::byte> record);
  // The last record put into the id's slot, valid until the next Put() there.
  std::span<const std::byte> Get(std::uint64_t id) const { return {At(id), record_bytes_}; }
  // The id's slot, for filling it in place.
  std::span<std::byte> Slot(std::uint64_t id) { return {At(id), record_bytes_}; }

  // Copies the records of ids first, first + 1, ... to an array, and back. REQUIRES: rows.size() is
  // a multiple of record_bytes(), at most capacity records.
  void CopyOut(std::uint64_t first, std::span<std::byte> rows) const;
  void CopyIn(std::uint64_t first, std::span<const std::byte> rows);

  static std::size_t MemoryBytes(std::size_t capacity, std::size_t record_bytes) {
    return capacity * record_bytes;
  }

 private:
  std::byte* At(std::uint64_t id) const { return bytes_.get() + ring_.SlotOf(id) * record_bytes_; }
  std::size_t RowsIn(std::size_t bytes) const;

  Ring ring_;
  std::size_t record_bytes_;
  std::unique_ptr<std::byte[]> bytes_;
};

// The same for a struct of plain data.
template <typename Record>
class TypedRing {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  explicit TypedRing(std::size_t capacity) : bytes_(capacity, sizeof(Record)) {}

  void Put(std::uint64_t id, const Record& record) {
    bytes_.Put(id, std::as_bytes(std::span(&record, 1)));
  }
  Record Get(std::uint64_t id) const {
    Record record;
    std::memcpy(&record, bytes_.Get(id).data(), sizeof(Record));
    return record;
  }
  void CopyOut(std::uint64_t first, std::span<Record> rows) const {
    bytes_.CopyOut(first, std::as_writable_bytes(rows));
  }
  void CopyIn(std::uint64_t first, std::span<const Record> rows) {
    bytes_.CopyIn(first, std::as_bytes(rows));
  }

 private:
  ByteRing bytes_;
};

}  // namespace uper
