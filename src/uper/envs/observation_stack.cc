#include "uper/envs/observation_stack.h"

#include <algorithm>

namespace uper {

AgentView::AgentView(const EnvironmentSpec& spec)
    : next_(spec.observation_bytes()),
      bytes_(spec.observation_bytes() * spec.frame_stack),
      depth_(spec.frame_stack) {}

void AgentView::Start() {
  std::fill(bytes_.begin(), bytes_.end(), std::byte{0});
  count_ = 0;
  Push();
}

void AgentView::Push() {
  const auto size = static_cast<std::ptrdiff_t>(next_.size());
  if (count_ == depth_) {
    std::shift_left(bytes_.begin(), bytes_.end(), size);
    --count_;
  }
  std::copy(next_.begin(), next_.end(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(count_) * size);
  ++count_;
}

}  // namespace uper
