#pragma once

#include <filesystem>
#include <memory>

#include "uper/cli/video/canvas.h"

namespace uper {

// A film, picture by picture. It appears under its name with Finish() only; without that nothing
// is left of it. Errors of writing throw: a full disk is Error(kResources). Not thread-safe.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;

  // REQUIRES: the size is that of the format.
  virtual void Add(const Canvas& canvas) = 0;
  // REQUIRES: at least one picture.
  virtual void Finish() = 0;
};

struct VideoFormat {
  int width = 0;   // even, as the codec of .mp4 wants it
  int height = 0;  // even
  int pictures_per_second = 0;
};

// The file that can be made here: `path`, or an animated .png of that name where an .mp4 was asked
// for and there is no ffmpeg.
std::filesystem::path VideoFileFor(const std::filesystem::path& path);

// By the ending of the name: .mp4, made by the program ffmpeg, or .png, an animated PNG. Throws
// Error(kUsage) for another ending or a place that cannot be written to, Error(kMissingData)
// without ffmpeg.
std::unique_ptr<VideoWriter> MakeVideoWriter(const std::filesystem::path& path,
                                             const VideoFormat& format);

}  // namespace uper
