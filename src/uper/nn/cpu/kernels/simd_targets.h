#pragma once

// Include before any Highway header: the instruction sets for which the kernels are compiled.
//
// Every kernel gives the same bits on every target: each output is one chain of fused
// multiply-adds in an order fixed by the sizes, and lanes hold different outputs (or, where a sum
// runs over lanes, 16 partial sums whatever the width). Targets without a fused multiply-add cannot
// do that at speed, so the SSE ones are left out; what remains for such a machine is Highway's
// portable target with std::fma for each lane: same bits, very slow. Scalable vectors are left out
// because tiles are sized at compile time.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
