#pragma once

namespace uper {

// How a kernel follows what is before it on its stream.
enum class Follow {
  kAfter,  // starts when everything before it has ended
  // May start while the kernel before it ends; reads nothing that a kernel writes until that one
  // has ended. Only right behind another kernel on the same stream, with nothing else to wait for.
  kOverlap,
};

}  // namespace uper
