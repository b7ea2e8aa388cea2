#pragma once

#include <cuda_pipeline_primitives.h>

#include "uper/nn/cuda/product.h"

namespace uper {

// How operands of a product come into shared memory, a chunk of the length at a time, and from
// there into the registers of a lane.

inline constexpr int kWarp = 32;
inline constexpr int kProductWarps = 8;  // they share the length
inline constexpr int kProductThreads = kProductWarps * kWarp;

__device__ inline int At(const Offsets& offsets, int i) {
  return offsets.table != nullptr ? __ldg(offsets.table + i) : i * offsets.stride;
}

// An operand's chunk in shared memory: [side][length + 4] if its length lies along memory (the
// extra floats spread the rows over the banks), else [length][side].
template <Along kAlong, int kSide>
struct Chunk {
  static constexpr int kStride = kAlong == Along::kLength ? kProductChunk + 4 : kSide;
  static constexpr int kFloats =
      kAlong == Along::kLength ? kSide * kStride : kProductChunk * kStride;
};

// Starts the copy of one chunk; entries beyond the sides and the end become 0. The thread keeps
// the offsets of its sides, which are the same in every chunk, and those of its taps in the next
// chunk, so that it need not wait for them.
template <Along kAlong, int kSide, bool kVectors>
class ChunkLoader {
 public:
  __device__ ChunkLoader(const float* base, const Offsets& side, int first, int sides)
      : base_(base) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int at = first + SideOf(i);
      const bool inside = at < sides && SideOf(i) < kSide;
      side_offsets_[i] = inside ? At(side, at) : -1;
    }
  }

  // What the next Start() needs, which is for the chunk that begins there.
  __device__ void Expect(const Offsets& taps, int begin, int end) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int k = begin + StepOf(i);
      taps_[i] = k < end ? At(taps, k) : 0;
    }
  }

  __device__ void Start(float* chunk, int begin, int end) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (kRagged && SideOf(i) >= kSide) continue;
      const int k = StepOf(i);
      const bool inside = begin + k < end && side_offsets_[i] >= 0;
      const float* from = inside ? base_ + side_offsets_[i] + taps_[i] : base_;
      float* to = chunk + (kAlong == Along::kLength ? SideOf(i) * C::kStride + k
                                                    : k * C::kStride + SideOf(i));
      __pipeline_memcpy_async(to, from, kWidth * sizeof(float),
                              inside ? 0 : kWidth * sizeof(float));
    }
  }

 private:
  using C = Chunk<kAlong, kSide>;
  static constexpr int kWidth = kVectors ? 4 : 1;
  static constexpr int kPieces = kSide * kProductChunk / kWidth;
  static constexpr int kCopies = (kPieces + kProductThreads - 1) / kProductThreads;
  static constexpr bool kRagged = kPieces % kProductThreads != 0;

  __device__ static int Piece(int i) { return i * kProductThreads + static_cast<int>(threadIdx.x); }
  __device__ static int SideOf(int i) {
    if (kAlong == Along::kLength) return Piece(i) / (kProductChunk / kWidth);
    return Piece(i) % (kSide / kWidth) * kWidth + (Piece(i) >= kPieces ? kSide : 0);
  }
  __device__ static int StepOf(int i) {
    if (kAlong == Along::kLength) return Piece(i) % (kProductChunk / kWidth) * kWidth;
    return Piece(i) / (kSide / kWidth);
  }

  const float* base_;
  int side_offsets_[kCopies];
  int taps_[kCopies] = {};
};

// The same for pixels, [side][length + 4]: they are fetched into registers, four at a time, and
// become floats on the way to shared memory.
template <int kSide>
class PixelLoader {
 public:
  __device__ PixelLoader(const std::uint8_t* base, float scale, const Offsets& side, int first,
                         int sides)
      : base_(base), scale_(scale) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int at = first + SideOf(i);
      side_offsets_[i] = at < sides && SideOf(i) < kSide ? At(side, at) : -1;
    }
  }

  __device__ void Fetch(const Offsets& taps, int begin, int end) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool inside = begin + StepOf(i) < end && side_offsets_[i] >= 0;
      pixels_[i] = inside ? __ldg(reinterpret_cast<const unsigned*>(base_ + side_offsets_[i] +
                                                                    At(taps, begin + StepOf(i))))
                          : 0;
    }
  }

  __device__ void Store(float* chunk) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (SideOf(i) >= kSide) continue;
      *reinterpret_cast<float4*>(chunk + SideOf(i) * kStride + StepOf(i)) =
          make_float4(Value<0>(i), Value<1>(i), Value<2>(i), Value<3>(i));
    }
  }

 private:
  static constexpr int kStride = Chunk<Along::kLength, kSide>::kStride;
  static constexpr int kQuads = kProductChunk / 4;
  static constexpr int kCopies = (kSide * kQuads + kProductThreads - 1) / kProductThreads;

  __device__ static int SideOf(int i) {
    return (i * kProductThreads + static_cast<int>(threadIdx.x)) / kQuads;
  }
  __device__ static int StepOf(int i) {
    return (i * kProductThreads + static_cast<int>(threadIdx.x)) % kQuads * 4;
  }
  // A byte in the lowest place of the float 2^23 is that float plus the byte: cheaper than a
  // conversion.
  template <int kByte>
  __device__ float Value(int i) const {
    constexpr float kTwo23 = 8388608.0F;
    const unsigned bits = __byte_perm(pixels_[i], 0x4b000000U, 0x7540 + kByte);
    return scale_ * (__uint_as_float(bits) - kTwo23);
  }

  const std::uint8_t* base_;
  float scale_;
  int side_offsets_[kCopies];
  unsigned pixels_[kCopies];
};

// The side index of a lane's i-th result: neighbours read neighbouring banks.
template <Along kAlong, int kLanes>
__device__ int SideOfResult(int lane, int i) {
  return kAlong == Along::kLength ? lane + kLanes * i : (i / 4 * kLanes + lane) * 4 + i % 4;
}

// Four steps of an operand for one lane: values[step][i].
template <Along kAlong, int kSide, int kLanes, int kTile>
__device__ void LoadSteps(const float* chunk, int lane, int step, float (&values)[4][kTile]) {
  constexpr int kStride = Chunk<kAlong, kSide>::kStride;
  if constexpr (kAlong == Along::kLength) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      const float4 four =
          *reinterpret_cast<const float4*>(chunk + (lane + kLanes * i) * kStride + step);
      values[0][i] = four.x;
      values[1][i] = four.y;
      values[2][i] = four.z;
      values[3][i] = four.w;
    }
  } else {
    static_assert(kTile % 4 == 0, "four neighbours are read at once");
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int i = 0; i < kTile; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(chunk + (step + k) * kStride +
                                                             (i / 4 * kLanes + lane) * 4);
        values[k][i] = four.x;
        values[k][i + 1] = four.y;
        values[k][i + 2] = four.z;
        values[k][i + 3] = four.w;
      }
    }
  }
}

}  // namespace uper
