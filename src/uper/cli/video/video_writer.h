#pragma once

#include <filesystem>
#include <memory>

#include "uper/cli/video/canvas.h"

namespace uper::cli {

// Writes a film picture by picture. The file appears under its name with Finish(). Without Finish()
// nothing remains. Write errors throw; a full disk is Error(kResources). Not thread-safe.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;

  // REQUIRES: the canvas has the size of the format.
  virtual void Add(const Canvas& canvas) = 0;
  // REQUIRES: at least one picture.
  virtual void Finish() = 0;
};

struct VideoFormat {
  int width = 0;   // even, as the codec of .mp4 requires
  int height = 0;  // even
  int pictures_per_second = 0;
};

// The file that this machine can make: `path`, or an animated .png of that name if `path` is an
// .mp4 and ffmpeg is missing.
std::filesystem::path VideoFileFor(const std::filesystem::path& path);

// Chooses the format by the ending of the name: .mp4, made by the program ffmpeg, or .png, an
// animated PNG. Throws Error(kUsage) for another ending or a folder that is not writable, and
// Error(kMissingData) if ffmpeg is missing.
std::unique_ptr<VideoWriter> MakeVideoWriter(const std::filesystem::path& path,
                                             const VideoFormat& format);

}  // namespace uper::cli
