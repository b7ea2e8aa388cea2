#include "uper/checkpoint/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

namespace uper::checkpoint {
namespace {

int ErrnoIf(bool failed) { return failed ? errno : 0; }

// Closes at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

class Posix : public FileSystem {
 public:
  int MakeFolder(const Path& folder) override {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    return error.value();
  }
  int Create(const Path& path, Handle* handle) override {
    *handle = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    return ErrnoIf(*handle < 0);
  }
  int Write(Handle handle, std::span<const std::byte> bytes, std::size_t* written) override {
    const ssize_t count = write(handle, bytes.data(), bytes.size());
    if (count > 0) *written = static_cast<std::size_t>(count);
    return count == 0 ? EIO : ErrnoIf(count < 0);
  }
  int Sync(Handle handle) override { return ErrnoIf(fsync(handle) != 0); }
  int Close(Handle handle) override {
    const int error = ErrnoIf(close(handle) != 0);
    return error == EINTR ? 0 : error;  // Linux has closed it
  }
  int Rename(const Path& from, const Path& to) override {
    return ErrnoIf(rename(from.c_str(), to.c_str()) != 0);
  }
  int Remove(const Path& path) override { return ErrnoIf(unlink(path.c_str()) != 0); }
  int SyncFolder(const Path& folder) override {
    const Descriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (descriptor.get() < 0) return errno;
    const int error = ErrnoIf(fsync(descriptor.get()) != 0);
    return error == EINVAL || error == ENOTSUP ? 0 : error;  // not every file system has this
  }
  int List(const Path& folder, std::vector<std::string>* names) override {
    std::error_code error;
    names->clear();
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      names->push_back(entry->path().filename().string());
    }
    return error.value();
  }
  int Size(const Path& path, std::uint64_t* bytes) override {
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) return errno;
    *bytes = static_cast<std::uint64_t>(status.st_size);
    return S_ISREG(status.st_mode) ? 0 : EINVAL;
  }
  int FreeBytes(const Path& folder, std::uint64_t* bytes) override {
    struct statvfs status{};
    if (statvfs(folder.c_str(), &status) != 0) return errno;
    *bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
    return 0;
  }
  int Read(const Path& path, std::uint64_t limit, std::vector<std::byte>* bytes) override {
    // Non-blocking, because opening a pipe of that name would wait for a writer.
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status{};
    if (file.get() < 0 || fstat(file.get(), &status) != 0) return errno;
    if (!S_ISREG(status.st_mode)) return EINVAL;
    if (static_cast<std::uint64_t>(status.st_size) > limit) return EFBIG;
    bytes->resize(static_cast<std::size_t>(status.st_size));
    return ReadAll(file.get(), bytes);
  }

 private:
  static int ReadAll(int descriptor, std::vector<std::byte>* bytes) {
    std::size_t done = 0;
    while (done < bytes->size()) {
      const ssize_t count = read(descriptor, bytes->data() + done, bytes->size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return count == 0 ? EIO : errno;  // the file became shorter meanwhile
      done += static_cast<std::size_t>(count);
    }
    return 0;
  }
};

int WriteAll(FileSystem& files, FileSystem::Handle handle, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t written = 0;
    const int error = RepeatInterrupted([&] { return files.Write(handle, bytes, &written); });
    if (error != 0) return error;
    bytes = bytes.subspan(written);
  }
  return 0;
}

}  // namespace

FileSystem& PosixFileSystem() {
  static Posix files;
  return files;
}

int WriteDurably(FileSystem& files, const std::filesystem::path& path,
                 std::span<const std::byte> bytes) {
  FileSystem::Handle handle = -1;
  int error = RepeatInterrupted([&] { return files.Create(path, &handle); });
  if (error != 0) return error;
  error = WriteAll(files, handle, bytes);
  if (error == 0) error = RepeatInterrupted([&] { return files.Sync(handle); });
  const int close_error = files.Close(handle);
  if (error == 0) error = close_error;
  if (error != 0) files.Remove(path);
  return error;
}

}  // namespace uper::checkpoint
