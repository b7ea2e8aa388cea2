#include "uper/cli/video/video_writer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "uper/base/check.h"
#include "uper/base/files/atomic_file.h"

extern char** environ;

namespace uper::cli {
namespace {

// Numbers in PNG files have their highest byte first.
void AppendNumber(std::string& bytes, std::uint32_t value, int width = 4) {
  for (int i = width - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string Chunk(std::string_view type, std::string_view content) {
  std::string chunk;
  AppendNumber(chunk, static_cast<std::uint32_t>(content.size()));
  chunk.append(type).append(content);
  const auto* checked = reinterpret_cast<const Bytef*>(chunk.data()) + 4;
  AppendNumber(chunk, static_cast<std::uint32_t>(
                          crc32(0, checked, static_cast<uInt>(type.size() + content.size()))));
  return chunk;
}

// An animated PNG that plays for ever. Its first picture is that of an ordinary PNG file. The other
// pictures are in additional chunks.
class AnimatedPng final : public VideoWriter {
 public:
  AnimatedPng(const std::filesystem::path& path, const VideoFormat& format)
      : format_(format), file_(path) {
    std::string header;
    AppendNumber(header, static_cast<std::uint32_t>(format.width));
    AppendNumber(header, static_cast<std::uint32_t>(format.height));
    header += {8, 2, 0, 0, 0};  // 8 bits of red, green and blue; the rest has one allowed value
    const std::string start = std::string("\x89PNG\r\n\x1a\n") + Chunk("IHDR", header);
    animation_at_ = start.size();
    file_.Write(start);
    file_.Write(Animation());  // its numbers are set at the end
  }

  void Add(const Canvas& canvas) override {
    Compress(canvas);
    std::string control;
    AppendNumber(control, sequence_++);
    AppendNumber(control, static_cast<std::uint32_t>(format_.width));
    AppendNumber(control, static_cast<std::uint32_t>(format_.height));
    AppendNumber(control, 0);  // place: x, y
    AppendNumber(control, 0);
    AppendNumber(control, 1, 2);  // shown for 1 / pictures_per_second
    AppendNumber(control, static_cast<std::uint32_t>(format_.pictures_per_second), 2);
    AppendNumber(control, 0, 2);  // no disposal, replace the previous pixels
    file_.Write(Chunk("fcTL", control));
    if (pictures_++ == 0) {
      file_.Write(Chunk("IDAT", compressed_));
      return;
    }
    std::string data;
    AppendNumber(data, sequence_++);
    file_.Write(Chunk("fdAT", data + compressed_));
  }

  void Finish() override {
    UPER_CHECK(pictures_ > 0, "a film without a picture");
    file_.Write(Chunk("IEND", ""));
    file_.Overwrite(animation_at_, Animation());
    file_.Commit();
  }

 private:
  std::string Animation() const {
    std::string content;
    AppendNumber(content, pictures_);
    AppendNumber(content, 0);  // repeat for ever
    return Chunk("acTL", content);
  }

  // Fills compressed_. Each row starts with the number of its filter; 0 is none.
  void Compress(const Canvas& canvas) {
    const std::size_t row_bytes = std::size_t{3} * format_.width;
    UPER_CHECK(canvas.rgb().size() == row_bytes * format_.height, "a picture of another size");
    rows_.clear();
    for (std::size_t at = 0; at < canvas.rgb().size(); at += row_bytes) {
      rows_ += '\0';
      rows_.append(reinterpret_cast<const char*>(canvas.rgb().data()) + at, row_bytes);
    }
    uLongf size = compressBound(rows_.size());
    compressed_.resize(size);
    const int result =
        compress2(reinterpret_cast<Bytef*>(compressed_.data()), &size,
                  reinterpret_cast<const Bytef*>(rows_.data()), rows_.size(), Z_BEST_SPEED);
    if (result != Z_OK) throw Error(ErrorKind::kResources, "no memory to compress a picture");
    compressed_.resize(size);
  }

  const VideoFormat format_;
  AtomicFile file_;
  std::size_t animation_at_ = 0;  // offset of the chunk with the number of pictures
  std::uint32_t pictures_ = 0;
  std::uint32_t sequence_ = 0;  // number of the next animation chunk
  std::string rows_, compressed_;
};

// Runs ffmpeg, which reads raw pictures from a socket and writes the temporary file.
class FfmpegVideo final : public VideoWriter {
 public:
  FfmpegVideo(const std::filesystem::path& path, const VideoFormat& format)
      : format_(format), file_(path) {
    Start({"ffmpeg",
           "-loglevel",
           "error",
           "-y",
           "-f",
           "rawvideo",
           "-pixel_format",
           "rgb24",
           "-video_size",
           std::to_string(format.width) + "x" + std::to_string(format.height),
           "-framerate",
           std::to_string(format.pictures_per_second),
           "-i",
           "pipe:0",
           "-c:v",
           "libx264",
           "-preset",
           "veryfast",
           "-crf",
           "18",
           "-pix_fmt",
           "yuv420p",
           "-movflags",
           "+faststart",
           "-f",
           "mp4",
           "file:" + file_.temporary().string()});
  }

  ~FfmpegVideo() override {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      Wait();
    }
    if (to_ffmpeg_ >= 0) close(to_ffmpeg_);
  }

  void Add(const Canvas& canvas) override {
    const std::span<const std::uint8_t> rgb = canvas.rgb();
    UPER_CHECK(rgb.size() == std::size_t{3} * format_.width * format_.height,
               "a picture of another size");
    for (std::size_t at = 0; at < rgb.size();) {
      // With a socket this flag turns the signal of a broken pipe into an error.
      const ssize_t sent = send(to_ffmpeg_, &rgb[at], rgb.size() - at, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) ThrowFailed(Wait());
      at += static_cast<std::size_t>(sent);
    }
  }

  void Finish() override {
    close(to_ffmpeg_);
    to_ffmpeg_ = -1;
    const int status = Wait();
    if (status != 0) ThrowFailed(status);
    file_.Commit();
  }

 private:
  void Start(const std::vector<std::string>& command) {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw Error(ErrorKind::kResources, std::string("cannot reach ffmpeg: ") + strerror(errno));
    }
    to_ffmpeg_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;  // its own process group, so that Ctrl-C does not reach it
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error =
        posix_spawnp(&process_, words[0], &actions, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error == 0) return;
    process_ = -1;
    close(to_ffmpeg_);
    throw Error(ErrorKind::kMissingData,
                "cannot start ffmpeg, which makes .mp4 files (" + std::string(strerror(error)) +
                    "): install it (apt-get install ffmpeg), or give a name that ends in .png for "
                    "an animated PNG");
  }

  // The exit status, or 128 + signal number if a signal ended ffmpeg.
  int Wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  [[noreturn]] void ThrowFailed(int status) const {
    throw Error(ErrorKind::kResources,
                "ffmpeg ended with status " + std::to_string(status) + " and " +
                    file_.path().string() +
                    " was not written; what it said is above (no space, or no encoder libx264?); "
                    "a name that ends in .png needs no ffmpeg");
  }

  const VideoFormat format_;
  AtomicFile file_;
  pid_t process_ = -1;
  int to_ffmpeg_ = -1;
};

// Searches the path like posix_spawnp().
bool HasFfmpeg() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/ffmpeg").c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

std::filesystem::path VideoFileFor(const std::filesystem::path& path) {
  if (path.extension() != ".mp4" || HasFfmpeg()) return path;
  return std::filesystem::path(path).replace_extension(".png");
}

std::unique_ptr<VideoWriter> MakeVideoWriter(const std::filesystem::path& path,
                                             const VideoFormat& format) {
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorKind::kUsage, path.string() + " is a folder; a video needs a file name");
  }
  if (path.extension() == ".mp4") return std::make_unique<FfmpegVideo>(path, format);
  if (path.extension() == ".png") return std::make_unique<AnimatedPng>(path, format);
  throw Error(ErrorKind::kUsage,
              "a video is an .mp4 file or an animated .png file, not '" + path.string() + "'");
}

}  // namespace uper::cli
