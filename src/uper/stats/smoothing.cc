#include "uper/stats/smoothing.h"

#include <algorithm>
#include <numeric>

#include "uper/base/check.h"

namespace uper {

std::vector<double> TrailingMean(std::span<const double> values, int window) {
  UPER_CHECK(window >= 1, "a window needs at least one value");
  std::vector<double> means;
  for (std::size_t end = 1; end <= values.size(); ++end) {
    const std::size_t count = std::min(end, static_cast<std::size_t>(window));
    const auto part = values.subspan(end - count, count);
    means.push_back(std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(count));
  }
  return means;
}

}  // namespace uper
