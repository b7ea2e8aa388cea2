#include "uper/stats/bootstrap.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "uper/base/check.h"
#include "uper/base/random.h"

namespace uper {

double SortedQuantile(std::span<const double> sorted, double probability) {
  UPER_CHECK(!sorted.empty(), "a quantile needs at least one value");
  const double position = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

Interval BootstrapMean(std::span<const double> per_seed, int replications) {
  UPER_CHECK(!per_seed.empty(), "a bootstrap needs at least one seed");
  const std::size_t n = per_seed.size();
  const double count = static_cast<double>(n);
  const double mean = std::accumulate(per_seed.begin(), per_seed.end(), 0.0) / count;
  if (n == 1) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {.value = mean, .low = -kInfinity, .high = kInfinity};
  }
  RandomStream stream(0, "bootstrap", n);
  std::vector<double> means(replications);
  for (double& resampled : means) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += per_seed[stream.UniformInt(n)];
    resampled = sum / count;
  }
  std::sort(means.begin(), means.end());
  return {.value = mean, .low = SortedQuantile(means, 0.025), .high = SortedQuantile(means, 0.975)};
}

}  // namespace uper
