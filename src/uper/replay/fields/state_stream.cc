#include "uper/replay/fields/state_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "uper/base/check.h"
#include "uper/base/files/atomic_file.h"
#include "uper/base/files/crc32c.h"

namespace uper {
namespace {

constexpr std::string_view kMagic = "UPERMEM1";
constexpr std::uint32_t kMostNameBytes = 64;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

template <typename Number>
std::span<const std::byte> BytesOf(const Number& number) {
  return std::as_bytes(std::span(&number, 1));
}

template <typename Number>
std::span<std::byte> WritableBytesOf(Number& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

}  // namespace

StateWriter::StateWriter(Sink sink) : sink_(std::move(sink)) { sink_(BytesOf(kMagic)); }

void StateWriter::Put(std::span<const std::byte> bytes) {
  crc_ = Crc32c(bytes, crc_);
  sink_(bytes);
}

void StateWriter::Begin(std::string_view name, std::uint64_t bytes) {
  UPER_CHECK(left_ == 0 && name.size() <= kMostNameBytes, "a block has begun");
  crc_ = 0;
  Put(BytesOf(static_cast<std::uint32_t>(name.size())));
  Put(BytesOf(name));
  Put(BytesOf(bytes));
  left_ = bytes;
}

void StateWriter::Append(std::span<const std::byte> piece) {
  UPER_CHECK(piece.size() <= left_, "a block is longer than it said");
  left_ -= piece.size();
  Put(piece);
}

void StateWriter::End() {
  UPER_CHECK(left_ == 0, "a block is shorter than it said");
  sink_(BytesOf(crc_));
}

void StateWriter::Block(std::string_view name, std::span<const std::byte> bytes) {
  Begin(name, bytes.size());
  Append(bytes);
  End();
}

StateReader::StateReader(std::string name, std::uint64_t bytes, Source source)
    : name_(std::move(name)), rest_(bytes), source_(std::move(source)) {
  std::string magic(kMagic.size(), '\0');
  if (rest_ < magic.size()) Fail("is too short to be a saved replay memory");
  Take(std::as_writable_bytes(std::span(magic)));
  if (magic != kMagic) Fail("is not a saved replay memory of this version");
}

void StateReader::Fail(const std::string& why) const {
  throw Error(ErrorKind::kCorrupt, name_ + " " + why);
}

void StateReader::Take(std::span<std::byte> bytes) {
  if (bytes.size() > rest_) Fail("ends too early");
  source_(bytes);
  rest_ -= bytes.size();
  crc_ = Crc32c(bytes, crc_);
}

std::uint64_t StateReader::Begin(std::string_view name) {
  UPER_CHECK(left_ == 0, "a block has begun");
  crc_ = 0;
  std::uint32_t length = 0;
  Take(WritableBytesOf(length));
  if (length > kMostNameBytes) Fail("is damaged: a block's name is too long");
  std::string found(length, '\0');
  Take(std::as_writable_bytes(std::span(found)));
  if (found != name) Fail("is damaged, or of another kind: no block '" + std::string(name) + "'");
  Take(WritableBytesOf(left_));
  if (left_ > rest_) Fail("ends too early");
  return left_;
}

void StateReader::Read(std::span<std::byte> piece) {
  if (piece.size() > left_) Fail("is damaged: a block is too short");
  left_ -= piece.size();
  Take(piece);
}

void StateReader::End() {
  if (left_ != 0) Fail("is damaged: a block is too long");
  const std::uint32_t computed = crc_;
  std::uint32_t stored = 0;
  Take(WritableBytesOf(stored));
  if (stored != computed) Fail("is damaged: a checksum is wrong; use another copy");
}

std::vector<std::byte> StateReader::Block(std::string_view name, std::uint64_t most) {
  const std::uint64_t bytes = Begin(name);
  if (bytes > most) Fail("is damaged: block '" + std::string(name) + "' is too long");
  std::vector<std::byte> block(bytes);
  Read(block);
  End();
  return block;
}

void StateReader::Finish() {
  Block("end", 0);
  if (rest_ != 0) Fail("is damaged: bytes follow its end");
}

void WriteStateFile(const std::filesystem::path& path,
                    const std::function<void(StateWriter&)>& write) {
  AtomicFile file(path);
  StateWriter writer([&](std::span<const std::byte> bytes) {
    file.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
  write(writer);
  writer.Finish();
  file.Commit();
}

namespace {

// A file that is open for reading.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path) : path_(path) {
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status{};
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) Fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) Fail("not a regular file");
    bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::uint64_t bytes() const { return bytes_; }

  void Read(std::span<std::byte> out) {
    while (!out.empty()) {
      const ssize_t count = read(descriptor_, out.data(), std::min(out.size(), kPiece));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        throw Error(ErrorKind::kResources,
                    "cannot read " + path_.string() + ": " + std::strerror(errno) + "; try again");
      }
      if (count == 0) throw Error(ErrorKind::kCorrupt, path_.string() + " ends too early");
      out = out.subspan(static_cast<std::size_t>(count));
    }
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 30;

  [[noreturn]] void Fail(const std::string& why) {
    if (descriptor_ >= 0) close(descriptor_);
    throw Error(ErrorKind::kMissingData, "cannot open " + path_.string() + ": " + why);
  }

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace

void ReadStateFile(const std::filesystem::path& path,
                   const std::function<void(StateReader&)>& read) {
  OpenFile file(path);
  StateReader reader(path.string(), file.bytes(),
                     [&](std::span<std::byte> out) { file.Read(out); });
  read(reader);
  reader.Finish();
}

std::vector<std::byte> StateBytes(const std::function<void(StateWriter&)>& write) {
  std::vector<std::byte> bytes;
  StateWriter writer([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  write(writer);
  writer.Finish();
  return bytes;
}

void ReadStateBytes(std::span<const std::byte> bytes,
                    const std::function<void(StateReader&)>& read) {
  std::span<const std::byte> rest = bytes;
  StateReader reader("the saved state", bytes.size(), [&](std::span<std::byte> out) {
    std::copy_n(rest.begin(), out.size(), out.begin());
    rest = rest.subspan(out.size());
  });
  read(reader);
  reader.Finish();
}

}  // namespace uper
