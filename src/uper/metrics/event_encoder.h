#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace uper {

// Records of a TensorBoard event file. A file is a sequence of TFRecords:
//   uint64 length | uint32 masked CRC-32C of the length | data | uint32 masked CRC-32C of the data
// (little-endian), each `data` a protocol buffer `Event`. The first one names the format.

struct TaggedScalar {
  std::string_view tag;
  double value = 0;  // stored as float
};

// The first record of every file.
std::string EventFileHeader(double wall_seconds);

// One event with the scalars of one step.
std::string ScalarEvent(double wall_seconds, std::int64_t step,
                        std::span<const TaggedScalar> scalars);

// Data wrapped as a TFRecord.
std::string TfRecord(std::string_view data);

// Length of the longest prefix of `bytes` that consists of whole, undamaged records.
std::size_t WholeTfRecords(std::string_view bytes);

}  // namespace uper
