#pragma once

namespace uper {

// A warp that computes a tile is 8 x 4 lanes. Neighbours by the lowest bit of the lane share a row,
// those by the second one a column: then the 16-byte reads of half a warp from shared memory are
// served at once, for rows and for columns.
inline constexpr int kLanesM = 8;
inline constexpr int kLanesN = 4;

__device__ inline int LaneM(int lane) { return (lane >> 1 & 1) | (lane >> 2 & 6); }
__device__ inline int LaneN(int lane) { return (lane & 1) | (lane >> 1 & 2); }

}  // namespace uper
