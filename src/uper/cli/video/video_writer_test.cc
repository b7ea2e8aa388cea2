#include "uper/cli/video/video_writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "uper/base/error_for_tests.h"
#include "uper/base/files/temporary_folder.h"

namespace uper::cli {
namespace {

namespace fs = std::filesystem;

constexpr VideoFormat kFormat = {.width = 16, .height = 8, .pictures_per_second = 10};

Canvas PictureNumber(int i) {
  Canvas canvas(kFormat.width, kFormat.height);
  canvas.FillRect(i, 1, 3, 2, {200, 30, static_cast<std::uint8_t>(i)});
  return canvas;
}

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::ptrdiff_t FilesIn(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

std::uint32_t NumberAt(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

struct PngChunk {
  std::string type, content;
};

std::vector<PngChunk> ChunksOf(const std::string& png) {
  std::vector<PngChunk> chunks;
  for (std::size_t at = 8; at < png.size();) {
    const std::size_t size = NumberAt(png, at);
    chunks.push_back({png.substr(at + 4, 4), png.substr(at + 8, size)});
    const std::string checked = png.substr(at + 4, 4 + size);
    EXPECT_EQ(NumberAt(png, at + 8 + size), crc32(0, reinterpret_cast<const Bytef*>(checked.data()),
                                                  static_cast<uInt>(checked.size())));
    at += 12 + size;
  }
  return chunks;
}

// The pixels, without the filter numbers, which must be 0.
std::vector<std::uint8_t> Unpacked(const std::string& compressed) {
  const std::size_t row = 3 * kFormat.width + 1;
  std::vector<std::uint8_t> rows(row * kFormat.height);
  uLongf size = rows.size();
  EXPECT_EQ(uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(compressed.data()),
                       compressed.size()),
            Z_OK);
  EXPECT_EQ(size, rows.size());
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % row == 0) {
      EXPECT_EQ(rows[i], 0);
    } else {
      pixels.push_back(rows[i]);
    }
  }
  return pixels;
}

ErrorKind KindOf(const std::function<void()>& function, const std::string& words) {
  const Thrown thrown = Catch(function);
  EXPECT_TRUE(thrown.Says(words)) << thrown.message;
  return thrown.kind;
}

TEST(AnimatedPngTest, HoldsEveryPicture) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "film.png";
  const auto writer = MakeVideoWriter(path, kFormat);
  for (int i = 0; i < 3; ++i) writer->Add(PictureNumber(i));
  EXPECT_FALSE(fs::exists(path));
  writer->Finish();
  EXPECT_EQ(FilesIn(folder.path()), 1);

  const std::vector<PngChunk> chunks = ChunksOf(Content(path));
  std::string types;
  for (const PngChunk& chunk : chunks) types += chunk.type + " ";
  ASSERT_EQ(types, "IHDR acTL fcTL IDAT fcTL fdAT fcTL fdAT IEND ");
  EXPECT_EQ(NumberAt(chunks[1].content, 0), 3u);
  const auto same = [](const std::string& packed, int i) {
    const Canvas canvas = PictureNumber(i);
    return Unpacked(packed) == std::vector(canvas.rgb().begin(), canvas.rgb().end());
  };
  EXPECT_TRUE(same(chunks[3].content, 0));
  EXPECT_TRUE(same(chunks[5].content.substr(4), 1));
  EXPECT_TRUE(same(chunks[7].content.substr(4), 2));
  for (std::uint32_t i = 0; i < 5; ++i) {  // chunks of the animation are counted, IDAT is not
    EXPECT_EQ(NumberAt(chunks[i == 0 ? 2 : i + 3].content, 0), i);
  }
}

TEST(VideoWriterTest, NothingIsLeftWithoutFinish) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "film.png") << "old";
  MakeVideoWriter(folder.path() / "film.png", kFormat)->Add(PictureNumber(0));
  EXPECT_EQ(Content(folder.path() / "film.png"), "old");
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

TEST(VideoWriterTest, RefusesWhatCannotBecomeAFilm) {
  const TemporaryFolder folder;
  const auto make = [&](const fs::path& path) { return [=] { MakeVideoWriter(path, kFormat); }; };
  EXPECT_EQ(KindOf(make(folder.path() / "film.gif"), ".mp4"), ErrorKind::kUsage);
  EXPECT_EQ(KindOf(make(folder.path() / "film"), ".png"), ErrorKind::kUsage);
  EXPECT_EQ(KindOf(make(folder.path() / "none" / "film.png"), "cannot create"), ErrorKind::kUsage);
  EXPECT_EQ(KindOf(make(folder.path() / "none" / "film.mp4"), "cannot create"), ErrorKind::kUsage);
  fs::create_directory(folder.path() / "folder.png");
  EXPECT_EQ(KindOf(make(folder.path() / "folder.png"), "is a folder"), ErrorKind::kUsage);
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

std::string SearchPath() {
  const char* path = std::getenv("PATH");
  return path != nullptr ? path : "";
}

// A test that replaces `ffmpeg` by a script, or hides it.
class FfmpegTest : public testing::Test {
 protected:
  FfmpegTest() : old_path_(SearchPath()) {
    fs::create_directory(folder_.path() / "bin");
    setenv("PATH", (folder_.path() / "bin").c_str(), 1);
  }
  ~FfmpegTest() override { setenv("PATH", old_path_.c_str(), 1); }

  void PutFfmpeg(const std::string& script) {
    const fs::path path = folder_.path() / "bin" / "ffmpeg";
    std::ofstream(path) << "#!/bin/sh\nPATH=" << old_path_ << "\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  void Film() {
    const auto writer = MakeVideoWriter(folder_.path() / "film.mp4", kFormat);
    for (int i = 0; i < 3; ++i) writer->Add(PictureNumber(i));
    writer->Finish();
  }

  const std::string old_path_;
  TemporaryFolder folder_;
};

TEST_F(FfmpegTest, MissingOneIsNamedWithTheWayOut) {
  EXPECT_EQ(KindOf([&] { Film(); }, "apt-get install ffmpeg"), ErrorKind::kMissingData);
  EXPECT_EQ(FilesIn(folder_.path()), 1);
}

TEST_F(FfmpegTest, GetsEveryPixelAndTheTemporaryName) {
  PutFfmpeg("for last in \"$@\"; do :; done; exec cat > \"${last#file:}\"");
  Film();
  std::string pixels;
  for (int i = 0; i < 3; ++i) {
    const Canvas canvas = PictureNumber(i);
    pixels.append(canvas.rgb().begin(), canvas.rgb().end());
  }
  EXPECT_EQ(Content(folder_.path() / "film.mp4"), pixels);
  EXPECT_EQ(FilesIn(folder_.path()), 2);
}

TEST_F(FfmpegTest, FailureAtTheEndLeavesNothing) {
  PutFfmpeg("cat > /dev/null; exit 3");
  EXPECT_EQ(KindOf([&] { Film(); }, "status 3"), ErrorKind::kResources);
  EXPECT_EQ(FilesIn(folder_.path()), 1);
}

TEST_F(FfmpegTest, FailureInTheMiddleIsAnErrorAndNoSignal) {
  PutFfmpeg("exit 4");
  const auto film_for_ever = [&] {
    const auto writer = MakeVideoWriter(folder_.path() / "film.mp4", kFormat);
    for (int i = 0; i < 1'000'000; ++i) writer->Add(PictureNumber(0));
  };
  EXPECT_EQ(KindOf(film_for_ever, "status 4"), ErrorKind::kResources);
  EXPECT_EQ(FilesIn(folder_.path()), 1);
}

}  // namespace
}  // namespace uper::cli
