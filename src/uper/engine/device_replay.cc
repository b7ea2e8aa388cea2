#include "uper/engine/device_replay.h"

#include "uper/replay/trees/tree_math.h"

namespace uper {

std::size_t DeviceReplaySpec::DeviceBytes() const {
  const std::size_t tree = TreeShape(capacity).nodes() * kTreeFanOut * sizeof(double);
  const std::size_t trees = normalization == WeightNormalization::kBufferMax ? 2 : 1;
  return capacity * (record_bytes + sizeof(float)) + trees * tree +
         (stack_depth > 0 ? frame_capacity * frame_bytes : 0);
}

}  // namespace uper
