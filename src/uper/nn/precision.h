#pragma once

namespace uper {

// How the GPU computes the gemms of the torso. All other computations are fp32, and so are the
// operands and results of the gemms. The CPU supports only kFp32.
enum class Precision {
  kFp32,    // every product is exact or rounded to fp32, and sums are fp32 or better
  kTf32,    // operands are rounded to 11 bits (TF32), for tensor cores
  kTf32x3,  // each operand is split into two such numbers; three of the four products are used
};

}  // namespace uper
