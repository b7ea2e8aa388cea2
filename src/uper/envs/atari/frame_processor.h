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
  kBilinear,  // Pillow's, with 8 bits between the two passes
  kArea,      // OpenCV's, in float
};

struct FrameProcessorOptions {
  int height = 210;  // of the screen
  int width = 160;
  int size = 84;  // of the square that comes out
  ResizeRule resize = ResizeRule::kBilinear;
};

// From two screens to one grey square, the same pixels as the Python libraries. Rows that repeat
// the one above, as most do on this console, are converted and resized across once. Not
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
  void DownBilinear();
  void DownArea();
  void ConvertTile(const std::uint8_t* one, const std::uint8_t* other, std::size_t first_row);

  // Constant after construction.
  const FrameProcessorOptions options_;
  const ScreenTable table_;
  const LaneTable single_;  // its diagonal
  Taps<int> across_bilinear_, down_bilinear_;
  std::vector<int> across_offsets_;  // [size, taps]: of the columns in tile_
  Taps<float> across_area_, down_area_;

  // Scratch.
  std::vector<int> row_of_;                 // [height]: number of the distinct row
  std::vector<int> rows_;                   // first line of each distinct row
  std::vector<std::uint8_t> grey_;          // [16, width]: distinct rows
  std::vector<std::uint8_t> tile_;          // [width, 16]: the same, turned
  std::vector<std::uint8_t> turned_;        // [stride, 16]: resized across
  std::vector<std::uint8_t> middle_bytes_;  // [distinct row, stride]: resized across
  std::vector<float> middle_floats_;
  std::vector<int> down_offsets_;     // [size, taps]: of the rows in middle_bytes_
  std::vector<std::uint8_t> result_;  // [size, stride]
};

}  // namespace uper::atari
