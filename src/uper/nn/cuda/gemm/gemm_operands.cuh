#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstddef>

#include "uper/nn/cuda/gemm/gemm.h"

namespace uper::cuda {

// Loads operands of a GEMM into shared memory, one chunk of k at a time.

inline constexpr int kWarp = 32;
inline constexpr int kGemmWarps = 8;  // they split k
inline constexpr int kGemmThreads = kGemmWarps * kWarp;

__device__ inline int At(const Offsets& offsets, int i) {
  return offsets.table != nullptr ? __ldg(offsets.table + i) : i * offsets.stride;
}

// An operand's chunk of kLength_ values of k in shared memory: [side][k + pad] if k is contiguous,
// else [k][side + pad]. The padding spreads the rows over the banks. A side is m for A and n for B.
template <Contiguous kContiguous_, int kSide_, int kLength_, int kPad>
struct PaddedChunk {
  static constexpr Contiguous kContiguous = kContiguous_;
  static constexpr int kSide = kSide_;
  static constexpr int kLength = kLength_;
  static constexpr int kStride = (kContiguous == Contiguous::kReduction ? kLength : kSide) + kPad;
  static constexpr int kFloats =
      (kContiguous == Contiguous::kReduction ? kSide : kLength) * kStride;
};

// Which groups of kWidth floats of a chunk a thread copies.
template <typename Chunk, int kWidth>
struct CopyPlan {
  static constexpr Contiguous kContiguous = Chunk::kContiguous;
  static constexpr int kSide = Chunk::kSide;
  static constexpr int kLength = Chunk::kLength;
  static constexpr int kPieces = kSide * kLength / kWidth;
  static constexpr int kCopies = (kPieces + kGemmThreads - 1) / kGemmThreads;
  static constexpr bool kRagged = kPieces % kGemmThreads != 0;

  __device__ static int Piece(int i) { return i * kGemmThreads + static_cast<int>(threadIdx.x); }
  __device__ static bool IsThere(int i) { return !kRagged || Piece(i) < kPieces; }
  __device__ static int SideOf(int i) {
    if (kContiguous == Contiguous::kReduction) return Piece(i) / (kLength / kWidth);
    return Piece(i) % (kSide / kWidth) * kWidth;
  }
  __device__ static int StepOf(int i) {
    if (kContiguous == Contiguous::kReduction) return Piece(i) % (kLength / kWidth) * kWidth;
    return Piece(i) / (kSide / kWidth);
  }
  // Offset in the chunk.
  __device__ static int PlaceOf(int i) {
    return kContiguous == Contiguous::kReduction ? SideOf(i) * Chunk::kStride + StepOf(i)
                                                 : StepOf(i) * Chunk::kStride + SideOf(i);
  }
};

// Copies one chunk; entries beyond the sides and beyond the end of k become 0.
template <typename Chunk, bool kVectors>
class ChunkLoader {
 public:
  __device__ ChunkLoader(const float* base, const Offsets& side, const Offsets& taps, int first,
                         int sides)
      : base_(base), step_offsets_(taps) {
#pragma unroll
    for (int i = 0; i < Plan::kCopies; ++i) {
      const int at = first + Plan::SideOf(i);
      side_offsets_[i] = at < sides && Plan::IsThere(i) ? At(side, at) : -1;
    }
  }

  // The next Start() is for the chunk that begins at `begin`.
  __device__ void Expect(int begin, int end) {
    begin_ = begin;
    end_ = end;
  }

  __device__ void Start(float* chunk) const {
#pragma unroll
    for (int i = 0; i < Plan::kCopies; ++i) {
      if (!Plan::IsThere(i)) continue;
      const int k = begin_ + Plan::StepOf(i);
      const bool inside = k < end_ && side_offsets_[i] >= 0;
      const float* from = inside ? base_ + side_offsets_[i] + At(step_offsets_, k) : base_;
      __pipeline_memcpy_async(chunk + Plan::PlaceOf(i), from, kWidth * sizeof(float),
                              inside ? 0 : kWidth * sizeof(float));
    }
  }

 private:
  static constexpr int kWidth = kVectors ? 4 : 1;
  using Plan = CopyPlan<Chunk, kWidth>;

  const float* base_;
  Offsets step_offsets_;
  int side_offsets_[Plan::kCopies];
  int begin_ = 0;
  int end_ = 0;
};

// The same for vectors and whole chunks, with almost no arithmetic. Beyond the sides it reads the
// last side again, for results that are not stored. The thread keeps in registers what the next
// Start() needs, so that it does not wait. kTables: tap offsets come from tables; otherwise taps
// have a stride.
template <typename Chunk, bool kTables>
class WholeLoader {
  static constexpr Contiguous kContiguous = Chunk::kContiguous;
  static constexpr int kLength = Chunk::kLength;

 public:
  __device__ WholeLoader(const float* base, const Offsets& side, const Offsets& taps, int first,
                         int sides)
      : table_(taps.table), stride_(taps.stride) {
    const int last = kContiguous == Contiguous::kReduction ? sides - 1 : sides - 4;
#pragma unroll
    for (int i = 0; i < Plan::kCopies; ++i) {
      const int at = min(first + Plan::SideOf(i), last);
      from_[i] = base + At(side, at);
      if (!kTables) from_[i] += static_cast<std::ptrdiff_t>(Plan::StepOf(i)) * stride_;
    }
  }

  __device__ void Expect(int begin, int end) {
    if (kTables) {
      const int* table = table_ + min(begin, end - kLength);
#pragma unroll
      for (int i = 0; i < kTaps; ++i) {
        if (Plan::IsThere(i)) taps_[i] = __ldg(table + Plan::StepOf(i));
      }
    } else {
      taps_[0] = begin * stride_;
    }
  }

  __device__ void Start(float* chunk) const {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(chunk));
#pragma unroll
    for (int i = 0; i < Plan::kCopies; ++i) {
      if (!Plan::IsThere(i)) continue;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       to + static_cast<unsigned>(sizeof(float)) * Plan::PlaceOf(i)),
                   "l"(__cvta_generic_to_global(from_[i] + taps_[i < kTaps ? i : 0]))
                   : "memory");
    }
  }

 private:
  using Plan = CopyPlan<Chunk, 4>;
  // If k is not contiguous, all copies of a thread have the same k.
  static constexpr int kTaps = kTables && kContiguous == Contiguous::kOutput ? Plan::kCopies : 1;
  static_assert(kContiguous == Contiguous::kOutput || kGemmThreads % (kLength / 4) == 0);

  const int* table_;
  int stride_;
  const float* from_[Plan::kCopies];
  int taps_[kTaps] = {};
};

// The same for bytes with contiguous k: loaded into registers, four at a time, and converted to
// floats on the way to shared memory.
template <typename Chunk>
class PixelLoader {
  static constexpr int kSide = Chunk::kSide;

 public:
  __device__ PixelLoader(const std::uint8_t* base, float scale, const Offsets& side,
                         const Offsets& taps, int first, int sides)
      : base_(base), scale_(scale), step_offsets_(taps) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int at = first + SideOf(i);
      side_offsets_[i] = at < sides && SideOf(i) < kSide ? At(side, at) : -1;
    }
  }

  __device__ void Fetch(int begin, int end) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool inside = begin + StepOf(i) < end && side_offsets_[i] >= 0;
      pixels_[i] = inside ? __ldg(reinterpret_cast<const unsigned*>(
                                base_ + side_offsets_[i] + At(step_offsets_, begin + StepOf(i))))
                          : 0;
    }
  }

  __device__ void Store(float* chunk) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (SideOf(i) >= kSide) continue;
      *reinterpret_cast<float4*>(chunk + SideOf(i) * Chunk::kStride + StepOf(i)) =
          make_float4(Value<0>(i), Value<1>(i), Value<2>(i), Value<3>(i));
    }
  }

 private:
  static constexpr int kQuads = Chunk::kLength / 4;
  static constexpr int kCopies = (kSide * kQuads + kGemmThreads - 1) / kGemmThreads;

  __device__ static int SideOf(int i) {
    return (i * kGemmThreads + static_cast<int>(threadIdx.x)) / kQuads;
  }
  __device__ static int StepOf(int i) {
    return (i * kGemmThreads + static_cast<int>(threadIdx.x)) % kQuads * 4;
  }
  // A byte in the lowest bits of the float 2^23 is that float plus the byte. This is cheaper than a
  // conversion.
  template <int kByte>
  __device__ float Value(int i) const {
    constexpr float kTwo23 = 8388608.0F;
    const unsigned bits = __byte_perm(pixels_[i], 0x4b000000U, 0x7540 + kByte);
    return scale_ * (__uint_as_float(bits) - kTwo23);
  }

  const std::uint8_t* base_;
  float scale_;
  Offsets step_offsets_;
  int side_offsets_[kCopies];
  unsigned pixels_[kCopies];
};

}  // namespace uper::cuda
