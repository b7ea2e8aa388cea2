#include "uper/stats/comparison.h"

#include <numeric>

#include "uper/base/check.h"
#include "uper/stats/aggregate.h"

namespace uper {
namespace {

double ShareOfWins(const std::vector<double>& x, const std::vector<double>& y) {
  UPER_CHECK(!x.empty() && !y.empty(), "a comparison needs at least one run on each side");
  double wins = 0;
  for (const double a : x) {
    for (const double b : y) wins += a > b ? 1.0 : (a == b ? 0.5 : 0.0);
  }
  return wins / static_cast<double>(x.size() * y.size());
}

}  // namespace

double ProbabilityOfImprovement(const TaskScores& x, const TaskScores& y) {
  UPER_CHECK(x.size() == y.size(), "a comparison needs the same tasks on both sides");
  std::vector<double> shares;
  for (std::size_t task = 0; task < x.size(); ++task)
    shares.push_back(ShareOfWins(x[task], y[task]));
  return Mean(shares);
}

std::vector<double> PerformanceProfile(const TaskScores& scores, std::span<const double> taus) {
  std::vector<double> profile;
  for (const double tau : taus) {
    std::size_t above = 0;
    std::size_t all = 0;
    for (const std::vector<double>& runs : scores) {
      all += runs.size();
      for (const double score : runs) above += score > tau ? 1 : 0;
    }
    UPER_CHECK(all > 0, "a profile needs at least one run");
    profile.push_back(static_cast<double>(above) / static_cast<double>(all));
  }
  return profile;
}

std::optional<double> CumulativeImprovement(std::span<const double> x, std::span<const double> y) {
  UPER_CHECK(x.size() == y.size(), "curves of different length");
  const double sum_x = std::accumulate(x.begin(), x.end(), 0.0);
  const double sum_y = std::accumulate(y.begin(), y.end(), 0.0);
  if (!(sum_y > 0)) return std::nullopt;
  return 100 * (sum_x - sum_y) / sum_y;
}

}  // namespace uper
