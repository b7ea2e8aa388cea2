#include "uper/envs/atari/frame_processor.h"

#include <algorithm>
#include <cstring>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"

// The compiler vectorizes the plain loops below. If it can, it also compiles them for AVX2; the
// program chooses at its start. (The sanitizers do not support that choice.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define UPER_FOR_EACH_CPU __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define UPER_FOR_EACH_CPU
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#define UPER_AVX2
#endif

namespace uper::atari {
namespace {

// Rows that are resized across together, one per lane.
constexpr std::size_t kTileRows = kLanes;
// Lines of the result are computed with this many columns at a time.
constexpr std::size_t kLaneColumns = kLanes;

constexpr std::size_t kPixelValues = std::tuple_size_v<ScreenTable>;

constexpr int kHalf = 1 << (kBilinearBits - 1);

std::size_t Stride(int size) {
  return CeilDiv(static_cast<std::size_t>(size), kLaneColumns) * kLaneColumns;
}

// One row of `width` pixels to gray. Most pixels are the same in both frames.
UPER_FOR_EACH_CPU void ConvertRow(const LaneTable& single, const std::uint8_t* pairs,
                                  const std::uint8_t* one, const std::uint8_t* other,
                                  std::size_t width, std::uint8_t* gray) {
  for (std::size_t x = 0; x < width; x += kLanes) {
    ByteLanes pixels;
    LoadLanes(one + x, pixels);
    pixels >>= 1;
    LookUp(single, pixels);
    StoreLanes(pixels, gray + x);
  }
  for (std::size_t x = 0; x < width; x += sizeof(std::uint64_t)) {
    std::uint64_t a, b;
    std::memcpy(&a, one + x, sizeof(a));
    std::memcpy(&b, other + x, sizeof(b));
    if (a == b) continue;
    for (std::size_t i = x; i < x + sizeof(a); ++i) {
      gray[i] = pairs[static_cast<std::size_t>(one[i] >> 1) * kPixelValues + (other[i] >> 1)];
    }
  }
}

// rows [kTileRows, columns] <-> columns [columns, kTileRows]. REQUIRES: columns a multiple of 16.
UPER_FOR_EACH_CPU void TurnRows(const std::uint8_t* rows, std::size_t columns,
                                std::uint8_t* turned) {
  for (std::size_t x = 0; x < columns; x += kLanes) {
    TransposeSquare(rows + x, columns, turned + x * kTileRows, kTileRows);
  }
}
UPER_FOR_EACH_CPU void TurnColumns(const std::uint8_t* turned, std::size_t columns,
                                   std::uint8_t* rows) {
  for (std::size_t x = 0; x < columns; x += kLanes) {
    TransposeSquare(turned + x * kTileRows, kTileRows, rows + x, columns);
  }
}

// Either pass of the bilinear resize. Each of the `groups` sets of weights gives `count` vectors of
// sixteen bytes. A result is the weighted sum of the vectors at bytes + offsets[group, t]. For the
// next result these move on by sixteen bytes.
struct ByteSums {
  const std::uint8_t* bytes;
  const int* offsets;  // [groups, width]
  const int* weights;  // [groups, width]
  int width;
  int groups;
  int count;
};

void SumBytesPortably(const ByteSums& sums, std::uint8_t* out) {
  for (int group = 0; group < sums.groups; ++group) {
    const int* offsets = sums.offsets + group * sums.width;
    const int* weights = sums.weights + group * sums.width;
    for (int i = 0; i < sums.count * static_cast<int>(kLanes); ++i) {
      int sum = kHalf;
      for (int t = 0; t < sums.width; ++t) sum += sums.bytes[offsets[t] + i] * weights[t];
      *out++ = static_cast<std::uint8_t>(sum >> kBilinearBits);
    }
  }
}

#ifdef UPER_AVX2
// Written by hand: the compiler converts badly between bytes and integers.
__attribute__((target("avx2"))) void SumBytesAvx2(const ByteSums& sums, std::uint8_t* out) {
  for (int group = 0; group < sums.groups; ++group) {
    const int* offsets = sums.offsets + group * sums.width;
    const int* weights = sums.weights + group * sums.width;
    for (int i = 0; i < sums.count; ++i, out += kLanes) {
      const std::uint8_t* bytes = sums.bytes + i * static_cast<int>(kLanes);
      __m256i low = _mm256_set1_epi32(kHalf);
      __m256i high = low;
      for (int t = 0; t < sums.width; ++t) {
        const __m128i lanes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + offsets[t]));
        const __m256i weight = _mm256_set1_epi32(weights[t]);
        low = _mm256_add_epi32(low, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(lanes), weight));
        high = _mm256_add_epi32(
            high, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(lanes, 8)), weight));
      }
      low = _mm256_srli_epi32(low, kBilinearBits);
      high = _mm256_srli_epi32(high, kBilinearBits);
      const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0b11011000);
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(out),
          _mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1)));
    }
  }
}
#endif

void SumBytes(const ByteSums& sums, std::uint8_t* out) {
#ifdef UPER_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return SumBytesAvx2(sums, out);
#endif
  SumBytesPortably(sums, out);
}

// tile [width, kTileRows] -> out [kTileRows, stride].
UPER_FOR_EACH_CPU void AcrossArea(const std::uint8_t* tile, const int* first, const float* weights,
                                  int width, int outputs, std::size_t stride, float* out) {
  for (int x = 0; x < outputs; ++x, ++out) {
    const std::uint8_t* columns = tile + static_cast<std::size_t>(first[x]) * kTileRows;
    for (std::size_t half = 0; half < kTileRows; half += kWideLanes) {
      FloatLanes sums = {};
      for (int t = 0; t < width; ++t) {
        IntLanes column;
        LoadInts(columns + static_cast<std::size_t>(t) * kTileRows + half, column);
        sums += __builtin_convertvector(column, FloatLanes) * weights[x * width + t];
      }
      for (std::size_t r = 0; r < kWideLanes; ++r) out[(half + r) * stride] = sums[r];
    }
  }
}

// One line of the result from the rows middle + rows[t] * stride.
UPER_FOR_EACH_CPU void SumFloats(const float* middle, const int* rows, const float* weights,
                                 int width, std::size_t stride, std::uint8_t* line) {
  // Adding and subtracting it rounds to the nearest integer, ties to even, because its last bit is
  // worth 1.
  constexpr float kRound = 12582912;  // 1.5 * 2^23
  for (std::size_t x = 0; x < stride; x += kWideLanes) {
    FloatLanes sums = {};
    for (int t = 0; t < width; ++t) {
      FloatLanes row;
      std::memcpy(&row, middle + static_cast<std::size_t>(rows[t]) * stride + x, sizeof(row));
      sums += row * weights[t];
    }
    StoreInts(__builtin_convertvector(sums + kRound - kRound, IntLanes), line + x);
  }
}

// The gray values of single frames.
LaneTable DiagonalOf(const ScreenTable& table) {
  std::array<std::uint8_t, kPixelValues> diagonal;
  for (std::size_t i = 0; i < kPixelValues; ++i) diagonal[i] = table[i][i];
  LaneTable lanes;
  for (std::size_t part = 0; part < lanes.parts.size(); ++part) {
    LoadLanes(diagonal.data() + part * kLanes, lanes.parts[part]);
  }
  return lanes;
}

// Pillow's choice since 13.0; earlier versions always resize across first. The results differ
// because of the rounding between the passes.
bool IsDownFirst(const FrameProcessorOptions& options) {
  return options.resize == ResizeRule::kBilinear && options.size < options.height &&
         options.height - options.size > 2 * (options.width - options.size);
}

}  // namespace

FrameProcessor::FrameProcessor(const FrameProcessorOptions& options, const ScreenTable& table)
    : options_(options),
      down_first_(IsDownFirst(options)),
      table_(table),
      single_(DiagonalOf(table)),
      row_of_(static_cast<std::size_t>(options.height)),
      gray_(static_cast<std::size_t>(options.width) *
            (down_first_ ? static_cast<std::size_t>(options.height) : kTileRows)),
      tile_(static_cast<std::size_t>(options.width) * kTileRows),
      turned_(Stride(options.size) * kTileRows),
      result_(Stride(options.size) * Stride(options.size)) {
  UPER_CHECK(options.width % kLanes == 0, "the width of a screen is a multiple of 16");
  // A last tile may be only partly used.
  const std::size_t rows = static_cast<std::size_t>(options.height) + kTileRows;
  if (options.resize == ResizeRule::kBilinear) {
    across_bilinear_ = BilinearTaps(options.width, options.size);
    down_bilinear_ = BilinearTaps(options.height, options.size);
    for (const int first : across_bilinear_.first) {
      for (int t = 0; t < across_bilinear_.width; ++t) {
        across_offsets_.push_back((first + t) * static_cast<int>(kTileRows));
      }
    }
    middle_bytes_.resize((down_first_ ? static_cast<std::size_t>(options.width) : rows) *
                         Stride(options.size));
  } else {
    across_area_ = AreaTaps(options.width, options.size);
    down_area_ = AreaTaps(options.height, options.size);
    middle_floats_.resize(rows * Stride(options.size));
  }
}

void FrameProcessor::Process(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other,
                             std::span<std::byte> out) {
  const std::size_t size = static_cast<std::size_t>(options_.size);
  const std::size_t pixels = std::size_t{1} * options_.height * options_.width;
  UPER_CHECK(one.size() == pixels && other.size() == pixels && out.size() == size * size,
             "a screen or a picture of another size");
  const std::size_t width = static_cast<std::size_t>(options_.width);
  const std::size_t stride = Stride(options_.size);
  const bool bilinear = options_.resize == ResizeRule::kBilinear;
  FindRows(one.data(), other.data());
  if (down_first_) {
    ConvertRows(one.data(), other.data(), 0, rows_.size());
    DownBilinear(gray_.data(), width, middle_bytes_.data());
    for (std::size_t first = 0; first < size; first += kTileRows) {
      TurnRows(middle_bytes_.data() + first * width, width, tile_.data());
      AcrossBilinear(result_.data() + first * stride);
    }
  } else {
    for (std::size_t first = 0; first < rows_.size(); first += kTileRows) {
      ConvertRows(one.data(), other.data(), first, std::min(kTileRows, rows_.size() - first));
      TurnRows(gray_.data(), width, tile_.data());
      if (bilinear) {
        AcrossBilinear(middle_bytes_.data() + first * stride);
      } else {
        const Taps<float>& taps = across_area_;
        AcrossArea(tile_.data(), taps.first.data(), taps.weights.data(), taps.width, taps.outputs(),
                   stride, middle_floats_.data() + first * stride);
      }
    }
    if (bilinear) {
      DownBilinear(middle_bytes_.data(), stride, result_.data());
    } else {
      DownArea();
    }
  }
  for (std::size_t y = 0; y < size; ++y) {
    std::memcpy(out.data() + y * size, result_.data() + y * stride, size);
  }
}

// tile_ -> out [kTileRows, stride].
void FrameProcessor::AcrossBilinear(std::uint8_t* out) {
  const Taps<int>& taps = across_bilinear_;
  SumBytes({.bytes = tile_.data(),
            .offsets = across_offsets_.data(),
            .weights = taps.weights.data(),
            .width = taps.width,
            .groups = taps.outputs(),
            .count = 1},
           turned_.data());
  TurnColumns(turned_.data(), Stride(options_.size), out);
}

// rows [distinct row, stride] -> out [size, stride]. REQUIRES: stride a multiple of 16.
void FrameProcessor::DownBilinear(const std::uint8_t* rows, std::size_t stride, std::uint8_t* out) {
  const Taps<int>& taps = down_bilinear_;
  const int step = static_cast<int>(stride);
  down_offsets_.clear();
  for (const int first : taps.first) {
    for (int t = 0; t < taps.width; ++t) {
      down_offsets_.push_back(
          row_of_[static_cast<std::size_t>(first) + static_cast<std::size_t>(t)] * step);
    }
  }
  SumBytes({.bytes = rows,
            .offsets = down_offsets_.data(),
            .weights = taps.weights.data(),
            .width = taps.width,
            .groups = taps.outputs(),
            .count = step / static_cast<int>(kLanes)},
           out);
}

void FrameProcessor::DownArea() {
  const Taps<float>& taps = down_area_;
  const std::size_t stride = Stride(options_.size);
  for (std::size_t y = 0; y < taps.first.size(); ++y) {
    SumFloats(middle_floats_.data(), row_of_.data() + taps.first[y],
              taps.weights.data() + y * taps.width, taps.width, stride,
              result_.data() + y * stride);
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

// Converts distinct rows to gray.
void FrameProcessor::ConvertRows(const std::uint8_t* one, const std::uint8_t* other,
                                 std::size_t first_row, std::size_t rows) {
  const std::size_t width = static_cast<std::size_t>(options_.width);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(rows_[first_row + r]) * width;
    ConvertRow(single_, table_.front().data(), one + at, other + at, width,
               gray_.data() + r * width);
  }
}

}  // namespace uper::atari
