#include "uper/envs/atari/frame_processor.h"

#include <algorithm>
#include <cstring>

#include "uper/base/check.h"

// The loops below are plain and become vectors; where the compiler can, also for AVX2, chosen when
// the program starts. (The sanitizers do not get along with that choice.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define UPER_FOR_EACH_CPU __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define UPER_FOR_EACH_CPU
#endif

namespace uper::atari {
namespace {

// Rows that are resized across together, one a lane.
constexpr std::size_t kTileRows = 16;
// Lines of the result are computed with this many columns at a time.
constexpr std::size_t kLaneColumns = 16;

constexpr int kHalf = 1 << (kBilinearBits - 1);

std::size_t Stride(int size) {
  return (static_cast<std::size_t>(size) + kLaneColumns - 1) / kLaneColumns * kLaneColumns;
}

// tile [width, kTileRows] -> out [kTileRows, stride].
UPER_FOR_EACH_CPU void AcrossBilinear(const std::uint8_t* tile, const int* first,
                                      const int* weights, int width, int outputs,
                                      std::size_t stride, std::uint8_t* out) {
  for (int x = 0; x < outputs; ++x) {
    int sums[kTileRows];
    for (std::size_t r = 0; r < kTileRows; ++r) sums[r] = kHalf;
    for (int t = 0; t < width; ++t) {
      const std::uint8_t* column = tile + static_cast<std::size_t>(first[x] + t) * kTileRows;
      const int weight = weights[x * width + t];
      for (std::size_t r = 0; r < kTileRows; ++r) sums[r] += weight * column[r];
    }
    for (std::size_t r = 0; r < kTileRows; ++r) {
      out[r * stride + static_cast<std::size_t>(x)] =
          static_cast<std::uint8_t>(sums[r] >> kBilinearBits);
    }
  }
}

UPER_FOR_EACH_CPU void AcrossArea(const std::uint8_t* tile, const int* first, const float* weights,
                                  int width, int outputs, std::size_t stride, float* out) {
  for (int x = 0; x < outputs; ++x) {
    float sums[kTileRows] = {};
    for (int t = 0; t < width; ++t) {
      const std::uint8_t* column = tile + static_cast<std::size_t>(first[x] + t) * kTileRows;
      const float weight = weights[x * width + t];
      for (std::size_t r = 0; r < kTileRows; ++r) {
        sums[r] += static_cast<float>(static_cast<int>(column[r])) * weight;
      }
    }
    for (std::size_t r = 0; r < kTileRows; ++r) {
      out[r * stride + static_cast<std::size_t>(x)] = sums[r];
    }
  }
}

// One line of the result from the rows middle + rows[t] * stride.
UPER_FOR_EACH_CPU void DownBilinear(const std::uint8_t* middle, const int* rows,
                                    const int* weights, int width, std::size_t stride,
                                    std::uint8_t* line) {
  for (std::size_t block = 0; block < stride; block += kLaneColumns) {
    int sums[kLaneColumns];
    for (std::size_t x = 0; x < kLaneColumns; ++x) sums[x] = kHalf;
    for (int t = 0; t < width; ++t) {
      const std::uint8_t* row = middle + static_cast<std::size_t>(rows[t]) * stride + block;
      const int weight = weights[t];
      for (std::size_t x = 0; x < kLaneColumns; ++x) sums[x] += weight * row[x];
    }
    for (std::size_t x = 0; x < kLaneColumns; ++x) {
      line[block + x] = static_cast<std::uint8_t>(sums[x] >> kBilinearBits);
    }
  }
}

// To the nearest integer, ties to even, for 0 <= value < 2^22.
std::uint8_t RoundToByte(float value) {
  constexpr float kShift = 12582912;  // 1.5 * 2^23: its last bit is worth 1
  return static_cast<std::uint8_t>(static_cast<int>(value + kShift - kShift));
}

UPER_FOR_EACH_CPU void DownArea(const float* middle, const int* rows, const float* weights,
                                int width, std::size_t stride, std::uint8_t* line) {
  for (std::size_t block = 0; block < stride; block += kLaneColumns) {
    float sums[kLaneColumns] = {};
    for (int t = 0; t < width; ++t) {
      const float* row = middle + static_cast<std::size_t>(rows[t]) * stride + block;
      const float weight = weights[t];
      for (std::size_t x = 0; x < kLaneColumns; ++x) sums[x] += weight * row[x];
    }
    for (std::size_t x = 0; x < kLaneColumns; ++x) line[block + x] = RoundToByte(sums[x]);
  }
}

}  // namespace

FrameProcessor::FrameProcessor(const FrameProcessorOptions& options, const ScreenTable& table)
    : options_(options),
      table_(table),
      row_of_(static_cast<std::size_t>(options.height)),
      tile_(static_cast<std::size_t>(options.width) * kTileRows),
      line_(Stride(options.size)) {
  // A last tile may be only partly used.
  const std::size_t rows = static_cast<std::size_t>(options.height) + kTileRows;
  if (options.resize == ResizeRule::kBilinear) {
    across_bilinear_ = BilinearTaps(options.width, options.size);
    down_bilinear_ = BilinearTaps(options.height, options.size);
    middle_bytes_.resize(rows * Stride(options.size));
  } else {
    across_area_ = AreaTaps(options.width, options.size);
    down_area_ = AreaTaps(options.height, options.size);
    middle_floats_.resize(rows * Stride(options.size));
  }
}

void FrameProcessor::Process(std::span<const std::uint8_t> one,
                             std::span<const std::uint8_t> other, std::span<std::byte> out) {
  const std::size_t size = static_cast<std::size_t>(options_.size);
  const std::size_t pixels = std::size_t{1} * options_.height * options_.width;
  UPER_CHECK(one.size() == pixels && other.size() == pixels && out.size() == size * size,
             "a screen or a picture of another size");
  const std::size_t stride = Stride(options_.size);
  const bool bilinear = options_.resize == ResizeRule::kBilinear;
  FindRows(one.data(), other.data());
  for (std::size_t first = 0; first < rows_.size(); first += kTileRows) {
    ConvertTile(one.data(), other.data(), first);
    if (bilinear) {
      const Taps<int>& taps = across_bilinear_;
      AcrossBilinear(tile_.data(), taps.first.data(), taps.weights.data(), taps.width,
                     taps.outputs(), stride, middle_bytes_.data() + first * stride);
    } else {
      const Taps<float>& taps = across_area_;
      AcrossArea(tile_.data(), taps.first.data(), taps.weights.data(), taps.width, taps.outputs(),
                 stride, middle_floats_.data() + first * stride);
    }
  }
  for (std::size_t y = 0; y < size; ++y) {
    if (bilinear) {
      const Taps<int>& taps = down_bilinear_;
      DownBilinear(middle_bytes_.data(), row_of_.data() + taps.first[y],
                   taps.weights.data() + y * taps.width, taps.width, stride, line_.data());
    } else {
      const Taps<float>& taps = down_area_;
      DownArea(middle_floats_.data(), row_of_.data() + taps.first[y],
               taps.weights.data() + y * taps.width, taps.width, stride, line_.data());
    }
    std::memcpy(out.data() + y * size, line_.data(), size);
  }
}

void FrameProcessor::FindRows(const std::uint8_t* one, const std::uint8_t* other) {
  const std::size_t width = static_cast<std::size_t>(options_.width);
  rows_.clear();
  for (int y = 0; y < options_.height; ++y) {
    const std::size_t at = static_cast<std::size_t>(y) * width;
    const bool repeats = y > 0 && std::memcmp(one + at, one + at - width, width) == 0 &&
                         std::memcmp(other + at, other + at - width, width) == 0;
    if (!repeats) rows_.push_back(y);
    row_of_[static_cast<std::size_t>(y)] = static_cast<int>(rows_.size()) - 1;
  }
}

// Converts up to kTileRows distinct rows to grey, turned by 90 degrees.
void FrameProcessor::ConvertTile(const std::uint8_t* one, const std::uint8_t* other,
                                 std::size_t first_row) {
  const std::size_t width = static_cast<std::size_t>(options_.width);
  const std::size_t rows = std::min(kTileRows, rows_.size() - first_row);
  const std::uint8_t* table = table_.front().data();
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(rows_[first_row + r]) * width;
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t a = one[at + x] >> 1;
      const std::size_t b = other[at + x] >> 1;
      tile_[x * kTileRows + r] = table[a * table_.size() + b];
    }
  }
}

}  // namespace uper::atari
