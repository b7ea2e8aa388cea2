#pragma once

namespace uper {

// How the matrix products of a network's torso are computed on the GPU. Everything else is fp32
// always, and so are operands and results; the CPU knows nothing but kFp32.
enum class Precision {
  kFp32,    // every product is exact or an fp32 one, and sums are fp32 or better
  kTf32,    // operands are rounded to 11 bits (TF32), for tensor cores
  kTf32x3,  // operands are split into two such numbers each; three of the four products count
};

}  // namespace uper
