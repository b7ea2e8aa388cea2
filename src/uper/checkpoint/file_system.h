#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace uper::checkpoint {

// The file operations of the checkpoint store, behind an interface: tests substitute a file system
// that fails, crashes and loses data. Every operation returns 0 or an errno value.
class FileSystem {
 public:
  using Handle = int;
  using Path = std::filesystem::path;

  virtual ~FileSystem() = default;

  // Creates the folder and its parents; an existing folder is no error.
  virtual int MakeFolder(const Path& folder) = 0;
  // Creates an empty file for writing and replaces an existing one. Does not follow links.
  virtual int Create(const Path& path, Handle* handle) = 0;
  // Appends at least one byte of a non-empty span, not necessarily all.
  virtual int Write(Handle handle, std::span<const std::byte> bytes, std::size_t* written) = 0;
  virtual int Sync(Handle handle) = 0;
  // Invalidates the handle, whatever it returns.
  virtual int Close(Handle handle) = 0;
  virtual int Rename(const Path& from, const Path& to) = 0;
  virtual int Remove(const Path& path) = 0;
  // Makes creations, renames and removals in the folder durable.
  virtual int SyncFolder(const Path& folder) = 0;
  // Lists the names of the entries in no particular order.
  virtual int List(const Path& folder, std::vector<std::string>* names) = 0;
  virtual int Size(const Path& path, std::uint64_t* bytes) = 0;
  // Bytes that may still be written to the disk of an existing folder.
  virtual int FreeBytes(const Path& folder, std::uint64_t* bytes) = 0;
  // Reads a whole regular file; EFBIG if it has more than `limit` bytes. Does not follow links.
  virtual int Read(const Path& path, std::uint64_t limit, std::vector<std::byte>* bytes) = 0;
};

// The file system of the machine. Stateless.
FileSystem& PosixFileSystem();

// Repeats an operation for as long as it returns EINTR.
template <typename Operation>
int RepeatInterrupted(Operation operation) {
  int error = operation();
  while (error == EINTR) error = operation();
  return error;
}

// Creates the file, writes all of it and makes its content durable (SyncFolder is still due).
// Repeats interrupted calls. Removes the file again on failure.
int WriteDurably(FileSystem& files, const std::filesystem::path& path,
                 std::span<const std::byte> bytes);

inline std::span<const std::byte> BytesOfText(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string TextOfBytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace uper::checkpoint
