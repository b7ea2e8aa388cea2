#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace uper::checkpoint {

// Compresses a replay segment into one zstd frame with the content's size and checksum.
std::vector<std::byte> CompressSegment(std::span<const std::byte> raw, int level);

// Throws Error(kCorrupt), its message starting with `what`, unless the frame is whole and holds
// exactly raw.size() bytes. Needs no memory beyond the two spans.
void DecompressSegment(std::span<const std::byte> frame, std::span<std::byte> raw,
                       const std::string& what);

}  // namespace uper::checkpoint
