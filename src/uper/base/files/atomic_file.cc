#include "uper/base/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "uper/base/error.h"

namespace uper {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

[[noreturn]] void ThrowFileError(const std::string& action, const std::filesystem::path& path,
                                 int error) {
  const bool disk_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(disk_full ? ErrorKind::kResources : ErrorKind::kUsage,
              action + " " + path.string() + ": " + std::strerror(error) +
                  (disk_full ? "; free some space and run the command again"
                             : "; choose a folder that can be written to"));
}

void SyncFolder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // some file systems refuse; the data itself is already safe
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

void CreateWritableFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) ThrowFileError("cannot create folder", folder, error.value());
  const std::filesystem::path probe = folder / (".writable." + std::to_string(getpid()));
  const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) ThrowFileError("cannot write to folder", folder, errno);
  close(descriptor);
  unlink(probe.c_str());
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp." + std::to_string(getpid())) {
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) ThrowFileError("cannot create", temporary_, errno);
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void AtomicFile::Write(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferBytes) FlushBuffer();
}

void AtomicFile::FlushBuffer() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowFileError("cannot write", temporary_, errno);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void AtomicFile::Overwrite(std::uint64_t offset, std::string_view bytes) {
  FlushBuffer();
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowFileError("cannot write", temporary_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void AtomicFile::Commit() {
  FlushBuffer();
  if (fsync(descriptor_) != 0) ThrowFileError("cannot save", temporary_, errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    ThrowFileError("cannot save", path_, error);
  }
  SyncFolder(path_.parent_path());
}

void WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.Write(content);
  file.Commit();
}

}  // namespace uper
