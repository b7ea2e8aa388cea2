#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "uper/checkpoint/checkpoint_content.h"
#include "uper/checkpoint/checkpoint_manifest.h"
#include "uper/checkpoint/file_system.h"

namespace uper::checkpoint {

// A tensor file in memory and the views into it. Movable, not copyable.
struct LoadedTensors {
  LoadedTensors() = default;
  LoadedTensors(LoadedTensors&&) = default;
  LoadedTensors& operator=(LoadedTensors&&) = default;

  std::vector<std::byte> file;
  TensorMap tensors;
};

// A checkpoint whose files have all been verified. Streams stay on disk until they are read.
struct LoadedCheckpoint {
  using RecordSink = std::function<void(std::uint64_t begin, std::uint64_t end,
                                        std::span<const std::byte> records)>;

  Manifest manifest;
  nlohmann::json document;
  std::map<std::string, LoadedTensors> tensors;

  // These throw Error(kCorrupt) if there is no such part.
  const TensorMap& Tensors(const std::string& name) const;
  const ManifestStream& Stream(const std::string& name) const;
  // Passes the live records to the sink in order, some thousands at a time.
  void ReadStream(const std::string& name, const RecordSink& sink) const;
  // Checksum over the live records: equal for equal content, however it is cut into segments.
  std::string StreamHash(const std::string& name) const;

  std::filesystem::path folder;
  FileSystem* files = nullptr;
};

struct LoadResult {
  std::optional<LoadedCheckpoint> checkpoint;
  // Messages for the user: skipped checkpoints and why.
  std::vector<std::string> notes;
};

// How the bytes differ from the file that the manifest names, or "" if they do not.
std::string ProblemWith(const ManifestFile& file, std::span<const std::byte> bytes);
// Reads a file and checks it. Throws Error(kCorrupt) naming it.
std::vector<std::byte> ReadVerified(FileSystem& files, const std::filesystem::path& folder,
                                    const ManifestFile& file);
// Reads a manifest and checks it alone. Throws Error(kCorrupt) naming it.
Manifest ReadManifest(FileSystem& files, const std::filesystem::path& folder,
                      const std::string& name);
// Reads and verifies everything that a manifest names. Throws Error(kCorrupt) naming the file.
LoadedCheckpoint LoadCheckpoint(FileSystem& files, const std::filesystem::path& folder,
                                const Manifest& manifest);

// Names in the folder; none if it does not exist. Throws Error(kUsage) if it cannot be read.
std::vector<std::string> ListCheckpoints(FileSystem& files, const std::filesystem::path& folder);
// The numbers of the manifests among the names, newest first.
std::vector<std::uint64_t> ManifestNumbers(const std::vector<std::string>& names);

// This file exists once the first checkpoint has been published. With it, a folder whose manifests
// are all lost is not taken for an empty one.
inline constexpr const char* kMarkerName = "format";
inline constexpr const char* kMarkerText = "uper checkpoints, format 1\n";

// The newest checkpoint that verifies: CheckpointStore::Load without the store, for `evaluate` and
// `inspect`.
LoadResult LoadNewestCheckpoint(const std::filesystem::path& folder,
                                FileSystem& files = PosixFileSystem());

}  // namespace uper::checkpoint
