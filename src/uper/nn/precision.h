#pragma once

namespace uper {

// How the matrix products of a network's torso are computed on the GPU. Sums and everything else
// are fp32 always; the CPU knows nothing but kFp32.
enum class Precision {
  kFp32,    // every product is an fp32 one
  kTf32,    // operands are rounded to 11 bits (TF32), for tensor cores
  kTf32x3,  // operands are split into two such numbers each; three of the four products count
};

}  // namespace uper
