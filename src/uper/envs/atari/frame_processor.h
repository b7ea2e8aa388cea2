#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/envs/atari/byte_lanes.h"
#include "uper/envs/atari/resample.h"
#include "uper/envs/atari/screen_table.h"

namespace uper::atari {

enum class ResizeRule {
  kBilinear,  // Pillow 13's, with 8 bits between the two passes
  kArea,      // OpenCV's, in float
};

struct FrameProcessorOptions {
  int height = 210;  // of the screen
  int width = 160;
  int size = 84;  // of the square that comes out
  ResizeRule resize = ResizeRule::kBilinear;
};

// Turns two screens into one gray square, with the same pixels as the Python libraries. Most rows
// on this console repeat the row above; these are converted and resized across once. Not
// thread-safe.
class FrameProcessor {
 public:
  FrameProcessor(const FrameProcessorOptions& options, const ScreenTable& table);

  // `one` and `other` are screens [height, width]; give the same one twice for a single frame.
  // REQUIRES: `out` has size * size bytes.
  void Process(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other,
               std::span<std::byte> out);

 private:
  void FindRows(const std::uint8_t* one, const std::uint8_t* other);
  void ConvertRows(const std::uint8_t* one, const std::uint8_t* other, std::size_t first_row,
                   std::size_t rows);
  void AcrossBilinear(std::uint8_t* out);
  void DownBilinear(const std::uint8_t* rows, std::size_t stride, std::uint8_t* out);
  void DownArea();

  // Constant after construction.
  const FrameProcessorOptions options_;
  const bool down_first_;  // the order of the passes
  const ScreenTable table_;
  const LaneTable single_;  // its diagonal
  Taps<int> across_bilinear_, down_bilinear_;
  std::vector<int> across_offsets_;  // [size, taps]: of the columns in tile_
  Taps<float> across_area_, down_area_;

  // Scratch.
  std::vector<int> row_of_;                 // [height]: number of the distinct row
  std::vector<int> rows_;                   // first line of each distinct row
  std::vector<std::uint8_t> gray_;          // [16, width]: distinct rows; all of them if down first
  std::vector<std::uint8_t> tile_;          // [width, 16]: rows to resize across, turned
  std::vector<std::uint8_t> turned_;        // [stride, 16]: resized across
  std::vector<std::uint8_t> middle_bytes_;  // [distinct row, stride]: resized across; down first:
                                            // [size, width], resized down
  std::vector<float> middle_floats_;
  std::vector<int> down_offsets_;     // [size, taps]: of the rows to resize down
  std::vector<std::uint8_t> result_;  // [size, stride], and room for whole tiles
};

}  // namespace uper::atari
