#pragma once

namespace uper::cuda {

// When a kernel starts relative to the previous work on its stream.
enum class LaunchOrder {
  kSerial,  // when all previous work has ended
  // May start while the previous kernel ends. It must not read what any kernel writes until that
  // kernel has ended. Only directly after another kernel on the same stream, with nothing else to
  // wait for.
  kOverlapPrevious,
};

}  // namespace uper::cuda
