#pragma once

namespace uper::cuda {

// The 32 lanes of a warp that computes a tile are arranged as 8 x 4. Lanes that differ in the
// lowest bit share a row; lanes that differ in the second bit share a column. So the 16-byte reads
// of half a warp from shared memory are served at once, for rows and for columns.
inline constexpr int kLanesM = 8;
inline constexpr int kLanesN = 4;

__device__ inline int LaneM(int lane) { return (lane >> 1 & 1) | (lane >> 2 & 6); }
__device__ inline int LaneN(int lane) { return (lane & 1) | (lane >> 1 & 2); }

}  // namespace uper::cuda
