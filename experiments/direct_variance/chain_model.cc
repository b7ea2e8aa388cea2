#include "experiments/direct_variance/chain_model.h"

#include "experiments/direct_variance/arms_model.h"
#include "uper/base/random.h"
#include "uper/core/direct_variance.h"

namespace uper::experiments::direct_variance {
namespace {

// One episode, learning from each step. The entry after the last state belongs to the terminal
// state and stays 0, so the end of an episode needs no special case.
void LearnEpisode(const VarianceChainOptions& options, double step, RandomStream& stream,
                  std::vector<double>& value, std::vector<double>& variance) {
  std::size_t s = 0;
  while (s < options.sigmas.size()) {
    const double reward = options.reward_mean + options.sigmas[s] * stream.Normal();
    const std::size_t next = stream.Bernoulli(options.stay) ? s : s + 1;
    const double delta = reward + options.discount * value[next] - value[s];
    variance[s] = VarianceTdStep(variance[s], delta, options.discount, variance[next], step);
    value[s] += step * delta;
    s = next;
  }
}

}  // namespace

ChainTruth SolveChain(const VarianceChainOptions& options) {
  const std::size_t n = options.sigmas.size();
  const double g = options.discount;
  const double q = options.stay;
  ChainTruth truth{.value = std::vector<double>(n), .variance = std::vector<double>(n)};
  double next_value = 0;
  double next_variance = 0;
  for (std::size_t i = n; i-- > 0;) {
    truth.value[i] = (options.reward_mean + g * (1 - q) * next_value) / (1 - g * q);
    const double gap = truth.value[i] - next_value;
    truth.variance[i] = (options.sigmas[i] * options.sigmas[i] + g * g * q * (1 - q) * gap * gap +
                         g * g * (1 - q) * next_variance) /
                        (1 - g * g * q);
    next_value = truth.value[i];
    next_variance = truth.variance[i];
  }
  return truth;
}

std::vector<ChainPoint> SimulateVarianceChain(const VarianceChainOptions& options,
                                              std::uint64_t seed) {
  const std::size_t n = options.sigmas.size();
  RandomStream start(seed, "direct variance chain start");
  RandomStream stream(seed, "direct variance chain");
  std::vector<double> value(n + 1);
  std::vector<double> variance(n + 1);
  for (std::size_t i = 0; i < n; ++i) variance[i] = options.variance_start_high * start.Uniform();
  std::vector<ChainPoint> points;
  int done = 0;
  for (const int time : LogarithmicTimes(options.episodes)) {
    for (; done < time; ++done) {
      LearnEpisode(options, options.step.At(done), stream, value, variance);
    }
    points.push_back({.episodes = done,
                      .value = {value.begin(), value.end() - 1},
                      .variance = {variance.begin(), variance.end() - 1}});
  }
  return points;
}

}  // namespace uper::experiments::direct_variance
