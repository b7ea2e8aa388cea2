// The replay memory and the priorities in a user's own training loop: the README's example, with
// random numbers instead of a network. It needs only a C++20 compiler and the lower layers.

#include <cstdio>
#include <vector>

#include "uper/base/random.h"
#include "uper/core/priority.h"
#include "uper/core/uncertainty.h"
#include "uper/replay/transition_replay.h"

namespace {

constexpr std::size_t kMembers = 10;
constexpr std::size_t kQuantiles = 51;
constexpr std::size_t kBatch = 32;

// Random numbers instead of the outputs of a network for one sample: [member, quantile].
std::vector<float> FakeQuantiles(uper::RandomStream& stream) {
  std::vector<float> theta(kMembers * kQuantiles);
  for (float& value : theta) value = static_cast<float>(stream.Normal());
  return theta;
}

}  // namespace

int main() {
  uper::RandomStream stream(1, "example");
  const std::vector<float> observation(4, 0.0F);
  const auto bytes = std::as_bytes(std::span(observation));

  uper::WholeReplay replay({.buffer = {.capacity = 10'000, .selection = {.priority_exponent = 0.6}},
                            .masks = {.members = kMembers}},
                           uper::WholeObservations(10'000, bytes.size()),
                           uper::ReplayStreams(/*seed=*/1));
  for (int step = 0; step < 1000; ++step) {
    replay.Add({.s_tm1 = bytes, .a_tm1 = 0, .r_t = 1, .discount_t = 0.99, .s_t = bytes});
  }

  uper::ReplayBatch batch = replay.MakeBatch(kBatch);
  std::vector<double> priorities(kBatch);
  for (int update = 0; update < 100; ++update) {
    replay.Sample({.importance_exponent = 0.4}, batch.view());
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::vector<float> online = FakeQuantiles(stream);
      const std::vector<float> target = FakeQuantiles(stream);
      const uper::Uncertainty uncertainty = uper::DecomposeTargetQuantiles<float>(
          online, target, {.members = kMembers, .quantiles = kQuantiles}, batch.r_t[i],
          batch.discount_t[i]);
      priorities[i] = uper::ComputePriority(uper::PriorityRule::kInfoGainDelta,
                                            {.uncertainty = uncertainty}, {})
                          .value;
    }
    replay.SetPriorities(batch.ids, priorities);
  }
  replay.CheckValid();
  std::printf("%zu transitions, largest priority %.3f\n", replay.size(),
              replay.buffer().largest_priority());
  return 0;
}
