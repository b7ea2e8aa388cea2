#pragma once

// The instruction sets for which the kernels are compiled. Include this before any Highway header.
//
// Every kernel gives the same bits on every target. Each output is one chain of fused multiply-adds
// in an order that only the sizes decide. Lanes hold different outputs; where a sum runs over
// lanes, it has 16 partial sums for any vector width. Targets without a fused multiply-add are too
// slow for this, so the SSE targets are excluded. A machine without a better target runs Highway's
// portable target with std::fma per lane: the same bits, but very slow. Scalable vectors are
// excluded because tiles have sizes that are known at compile time.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
