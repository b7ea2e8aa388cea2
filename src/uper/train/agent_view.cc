#include "uper/train/agent_view.h"

#include <algorithm>

namespace uper {

AgentView::AgentView(const EnvironmentSpec& spec)
    : next_(spec.observation_bytes()),
      bytes_(spec.observation_bytes() * spec.stack),
      depth_(spec.stack) {}

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
