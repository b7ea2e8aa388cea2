#pragma once

#include <cstddef>

#include "uper/nn/cuda/loss/loss_common.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"

namespace uper::cuda {

// The targets of one (sample, member), sorted and summed by a block in shared memory.

// Sums of distances and of squared distances.
struct alignas(16) TargetSums {
  double distances = 0;
  double squares = 0;
};

// The place of entry i in a sorted or summed array. Gaps spread the steps of a search, and rows of
// kLaneTargets entries, over the banks of shared memory.
inline constexpr int kLaneTargets = 8;
__host__ __device__ constexpr unsigned Place(unsigned i) { return i + i / kLaneTargets; }
__device__ constexpr int EntryAt(unsigned place) {
  return static_cast<int>(place - place / (kLaneTargets + 1));
}

// The block's shared memory.
struct TargetRow {
  __host__ __device__ explicit TargetRow(int quantiles) : count(quantiles) {
    while (span <= count) span *= 2;
  }
  __host__ __device__ int runs_size() const {
    return (count + kWarpSize - 1) / kWarpSize * kWarpSize;
  }
  __host__ __device__ std::size_t bytes() const {
    return sizeof(TargetSums) * (Place(count) + 1) + sizeof(Outputs) * count +
           sizeof(float) * (runs_size() + Place(span));
  }
  __device__ void PlaceAt(TargetSums* memory) {
    prefix = memory;
    outputs = reinterpret_cast<Outputs*>(prefix + Place(count) + 1);
    runs = reinterpret_cast<float*>(outputs + count);
    sorted = runs + runs_size();
  }

  int count;
  int span = 1;                  // smallest power of two above count
  TargetSums* prefix = nullptr;  // [Place(i)], i <= count: sums over the i smallest targets
  Outputs* outputs = nullptr;    // [count]
  float* runs = nullptr;         // targets in sorted runs of 32; the last run is padded with +inf
  float* sorted = nullptr;       // [Place(i)], i < span: the targets, then +inf
};

// The next larger float of a finite float.
__device__ inline float NextAbove(float value) {
  const int bits = __float_as_int(value + 0.0F);  // -0 becomes 0
  return __int_as_float(bits >= 0 ? bits + 1 : bits - 1);
}

// Sorts in ascending order over the lanes, with a bitonic network.
__device__ inline float WarpSort(float value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int size = 2; size <= kWarpSize; size *= 2) {
#pragma unroll
    for (int distance = size / 2; distance > 0; distance /= 2) {
      // The first step reverses one half, so that every step leaves the smaller value below.
      const int mask = distance == size / 2 ? size - 1 : distance;
      const float other = __shfl_xor_sync(kAllLanes, value, mask);
      value = (lane & distance) == 0 ? fminf(value, other) : fmaxf(value, other);
    }
  }
  return value;
}

// The place of entry `lane` of run `own` among all targets: the number of smaller targets, plus
// equal ones in earlier runs. Searches several runs at a time, so that their loads overlap. Within
// a run, no two lanes read different entries of one bank.
__device__ inline int RankOf(const TargetRow& row, int own, int lane) {
  constexpr int kTogether = 3;
  const int runs = row.runs_size() / kWarpSize;
  const float value = row.runs[own * kWarpSize + lane];
  const float above = NextAbove(value);
  int rank = lane;
#pragma unroll 1
  for (int i = 1; i < runs; i += kTogether) {
    const float* run[kTogether];
    const float* at[kTogether];
    float bound[kTogether];
#pragma unroll
    for (int w = 0; w < kTogether; ++w) {
      const int next = own + min(i + w, runs - 1);
      const int other = next < runs ? next : next - runs;
      at[w] = run[w] = row.runs + other * kWarpSize;
      bound[w] = other < own ? above : value;
    }
#pragma unroll
    for (int half = kWarpSize / 2; half > 0; half /= 2) {
#pragma unroll
      for (int w = 0; w < kTogether; ++w) {
        if (at[w][half - 1] < bound[w]) at[w] += half;
      }
    }
#pragma unroll
    for (int w = 0; w < kTogether; ++w) {
      if (*at[w] < bound[w]) ++at[w];
      if (i + w < runs) rank += static_cast<int>(at[w] - run[w]);
    }
  }
  return rank;
}

// Computes row.sorted from row.runs, which must hold finite numbers only. Ends with a barrier.
__device__ inline void MergeRuns(const TargetRow& row) {
  const int threads = static_cast<int>(blockDim.x);
  for (int j = static_cast<int>(threadIdx.x); j < row.runs_size(); j += threads) {
    const int rank = RankOf(row, j / kWarpSize, j % kWarpSize);
    if (j < row.count) row.sorted[Place(rank)] = row.runs[j];
  }
#pragma unroll 1
  for (int j = row.count + static_cast<int>(threadIdx.x); j < row.span; j += threads) {
    row.sorted[Place(j)] = INFINITY;
  }
  __syncthreads();
}

// The origin of the distances.
__device__ inline double OriginOf(const TargetRow& row) {
  return static_cast<double>(row.sorted[Place(row.count / 2)]);
}

// Inclusive prefix sums over the lanes.
__device__ inline TargetSums WarpScan(TargetSums sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const double distances = __shfl_up_sync(kAllLanes, sums.distances, distance);
    const double squares = __shfl_up_sync(kAllLanes, sums.squares, distance);
    if (lane >= distance) {
      sums.distances += distances;
      sums.squares += squares;
    }
  }
  return sums;
}

// Fills row.prefix from row.sorted. One warp works; a lane handles kLaneTargets neighbors.
__device__ inline void SumPrefixes(const TargetRow& row) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const double origin = OriginOf(row);
  TargetSums before;  // over all earlier lanes
  if (lane == 0) row.prefix[0] = before;
  for (int start = 0; start < row.count; start += kWarpSize * kLaneTargets) {
    const int first = start + lane * kLaneTargets;
    double distance[kLaneTargets];
    TargetSums own;
#pragma unroll
    for (int e = 0; e < kLaneTargets; ++e) {
      const int j = first + e;
      distance[e] = j < row.count ? static_cast<double>(row.sorted[Place(j)]) - origin : 0;
      own.distances += distance[e];
      own.squares = fma(distance[e], distance[e], own.squares);
    }
    const TargetSums scan = WarpScan(own);
    TargetSums sums = before;
    const double distances = __shfl_up_sync(kAllLanes, scan.distances, 1);
    const double squares = __shfl_up_sync(kAllLanes, scan.squares, 1);
    if (lane > 0) {
      sums.distances += distances;
      sums.squares += squares;
    }
#pragma unroll
    for (int e = 0; e < kLaneTargets; ++e) {
      sums.distances += distance[e];
      sums.squares = fma(distance[e], distance[e], sums.squares);
      if (first + e < row.count) row.prefix[Place(first + e + 1)] = sums;
    }
    before.distances = __shfl_sync(kAllLanes, sums.distances, kWarpSize - 1);
    before.squares = __shfl_sync(kAllLanes, sums.squares, kWarpSize - 1);
  }
}

}  // namespace uper::cuda
