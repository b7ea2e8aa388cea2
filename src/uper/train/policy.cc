#include "uper/train/policy.h"

#include <algorithm>

namespace uper {

int EpsilonGreedy(std::span<const float> q, double epsilon, RandomStream& stream) {
  if (stream.Bernoulli(epsilon)) return static_cast<int>(stream.UniformInt(q.size()));
  const float best = *std::max_element(q.begin(), q.end());
  const auto ties = static_cast<std::uint64_t>(std::count(q.begin(), q.end(), best));
  std::uint64_t skip = ties > 1 ? stream.UniformInt(ties) : 0;
  for (std::size_t action = 0; action < q.size(); ++action) {
    if (q[action] == best && skip-- == 0) return static_cast<int>(action);
  }
  return 0;  // only if every value is NaN
}

}  // namespace uper
