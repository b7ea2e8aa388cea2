#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace uper::checkpoint {

// The few file operations of the checkpoint store, as a seam: tests put a file system in their
// place that fails, crashes and forgets. Every operation returns 0 or an errno value.
class FileSystem {
 public:
  using Handle = int;
  using Path = std::filesystem::path;

  virtual ~FileSystem() = default;

  // With its parents; an existing folder is fine.
  virtual int MakeFolder(const Path& folder) = 0;
  // An empty file for writing, in the place of any other. Links are not followed.
  virtual int Create(const Path& path, Handle* handle) = 0;
  // Appends at least one byte of a non-empty span, not necessarily all.
  virtual int Write(Handle handle, std::span<const std::byte> bytes, std::size_t* written) = 0;
  virtual int Sync(Handle handle) = 0;
  // The handle is gone afterwards, whatever is returned.
  virtual int Close(Handle handle) = 0;
  virtual int Rename(const Path& from, const Path& to) = 0;
  virtual int Remove(const Path& path) = 0;
  // Makes creations, renames and removals in the folder durable.
  virtual int SyncFolder(const Path& folder) = 0;
  // Names of the entries, in no order.
  virtual int List(const Path& folder, std::vector<std::string>* names) = 0;
  virtual int Size(const Path& path, std::uint64_t* bytes) = 0;
  // Bytes that may still be written to the disk of an existing folder.
  virtual int FreeBytes(const Path& folder, std::uint64_t* bytes) = 0;
  // A whole regular file; EFBIG if it has more than `limit` bytes. Links are not followed.
  virtual int Read(const Path& path, std::uint64_t limit, std::vector<std::byte>* bytes) = 0;
};

// The real one. Stateless.
FileSystem& PosixFileSystem();

// Repeats an operation for as long as it returns EINTR.
template <typename Operation>
int RepeatInterrupted(Operation operation) {
  int error = operation();
  while (error == EINTR) error = operation();
  return error;
}

// Creates the file, writes all of it and makes its content durable (SyncFolder is still due).
// Interrupted calls are repeated. On failure what was written is removed again.
int WriteDurably(FileSystem& files, const std::filesystem::path& path,
                 std::span<const std::byte> bytes);

inline std::span<const std::byte> BytesOfText(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string TextOfBytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace uper::checkpoint
