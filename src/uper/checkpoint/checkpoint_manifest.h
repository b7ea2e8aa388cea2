#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace uper::checkpoint {

// A file of a checkpoint.
struct ManifestFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string checksum;  // XXH3-128

  bool operator==(const ManifestFile&) const = default;
};

// The records [begin, end) of a stream, compressed.
struct ManifestSegment {
  ManifestFile file;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const ManifestSegment&) const = default;
};

// Segments are contiguous; the first may start before first_id.
struct ManifestStream {
  std::uint64_t record_bytes = 0;
  std::uint64_t first_id = 0;
  std::uint64_t next_id = 0;
  std::vector<ManifestSegment> segments;

  bool operator==(const ManifestStream&) const = default;
};

// Readers refuse larger segments (before compression).
inline constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{256} << 20;

// manifest-NNNNNNNN.json: all files of one checkpoint.
struct Manifest {
  std::uint64_t number = 0;             // counts up from 1
  std::vector<std::uint64_t> previous;  // older manifests that were kept when it was published
  nlohmann::json info;
  ManifestFile document;
  std::map<std::string, ManifestFile> tensors;
  std::map<std::string, ManifestStream> streams;

  std::vector<ManifestFile> Files() const;
};

// The text of the file. Its first member is the checksum of the rest. A reader accepts a file only
// if this function produces the same bytes from its content, so every change is detected.
std::string EncodeManifest(const Manifest& manifest);

// Throws Error(kCorrupt), its message starting with `what`, unless the text is a whole and
// unchanged manifest whose names, ranges and sizes are consistent.
Manifest ParseManifest(const std::string& text, const std::string& what);

// Names of files below checkpoints/: "<stem>-<number, 8 digits>.<extension>".
std::string NumberedName(const std::string& stem, std::uint64_t number,
                         const std::string& extension);
std::string ManifestName(std::uint64_t number);
std::string SegmentName(const std::string& stream, std::uint64_t begin, std::uint64_t end,
                        std::uint64_t number);
// The number in a name of that form, or in its temporary name; nothing for other names.
std::optional<std::uint64_t> NumberInName(const std::string& name);
bool IsManifestName(const std::string& name);
// Names of tensor files and streams: 1 to 40 of a-z and _.
bool IsPartName(const std::string& name);

}  // namespace uper::checkpoint
