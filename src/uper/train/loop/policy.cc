#include "uper/train/loop/policy.h"

#include <algorithm>

namespace uper {

std::optional<int> RandomAction(std::size_t actions, double epsilon, RandomStream& stream) {
  if (!stream.Bernoulli(epsilon)) return std::nullopt;
  return static_cast<int>(stream.UniformInt(actions));
}

int GreedyAction(std::span<const float> q, RandomStream& stream) {
  const float best = *std::max_element(q.begin(), q.end());
  const auto ties = static_cast<std::uint64_t>(std::count(q.begin(), q.end(), best));
  std::uint64_t skip = ties > 1 ? stream.UniformInt(ties) : 0;
  for (std::size_t action = 0; action < q.size(); ++action) {
    if (q[action] == best && skip-- == 0) return static_cast<int>(action);
  }
  return 0;  // only if every value is NaN
}

}  // namespace uper
