#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace uper {

// Creates the folder and its parents. Throws Error(kUsage) if that fails or the folder is not
// writable, and Error(kResources) if the disk is full.
void CreateWritableFolder(const std::filesystem::path& folder);

// A file that appears under its name only when it is complete. All writes go to a temporary file
// beside it; Commit() flushes it to the disk and renames it. Without Commit() the destructor
// removes the temporary file, and an older file of that name stays as it was. Write errors throw: a
// full disk is Error(kResources), anything else Error(kUsage). Not thread-safe.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::string_view bytes);
  // Replaces bytes that were written before.
  void Overwrite(std::uint64_t offset, std::string_view bytes);
  void Commit();

  const std::filesystem::path& path() const { return path_; }
  // The temporary name, for another program that writes the file in our place.
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  void FlushBuffer();

  const std::filesystem::path path_;
  const std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::string buffer_;  // not yet written to the file
};

// Writes the whole file at once.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

}  // namespace uper
