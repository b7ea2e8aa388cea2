#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uper/base/random.h"
#include "uper/nn/initialization.h"
#include "uper/nn/learner.h"

namespace uper {

// Repeatable numbers and comparisons, for tests of kernels and learners.

// Standard normal.
inline std::vector<float> RandomFloats(std::size_t count, std::string_view name) {
  RandomStream stream(1, name);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

inline std::vector<int> RandomInts(std::size_t count, int bound, std::string_view name) {
  RandomStream stream(1, name);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(stream.UniformInt(bound));
  return values;
}

// Compares bits, not only numbers.
inline bool SameBits(std::span<const float> x, std::span<const float> y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
}

// The largest difference, relative to the largest entry of `expected` (if not all are zero).
template <typename Values, typename Expected>
double RelativeError(const Values& values, const Expected& expected) {
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double x = expected[i];
    largest = std::max(largest, std::abs(x));
    difference = std::max(difference, std::abs(x - static_cast<double>(values[i])));
  }
  if (values.size() != expected.size()) return 1e30;
  return largest > 0 ? difference / largest : difference;
}

// A batch that owns its memory. The second transition is the last of its episode.
struct LearnerTestData {
  LearnerTestData(const LearnerSpec& spec, const std::string& name)
      : actions(RandomInts(spec.batch, spec.network.actions, name + " actions")),
        rewards(RandomFloats(spec.batch, name + " rewards")),
        discounts(spec.batch, 0.9F),
        weights(spec.batch, 0.7F) {
    const std::size_t size = std::size_t{1} * spec.batch * spec.network.observation_size();
    if (spec.network.input.type == InputType::kUint8) {
      const int bound = spec.network.input.scale < 1 ? 256 : 2;
      for (const int x : RandomInts(size, bound, name + " s_tm1")) s_tm1.push_back(std::byte(x));
      for (const int x : RandomInts(size, bound, name + " s_t")) s_t.push_back(std::byte(x));
    } else {
      const std::vector<float> x = RandomFloats(size, name + " s_tm1");
      const std::vector<float> y = RandomFloats(size, name + " s_t");
      const auto x_bytes = std::as_bytes(std::span(x)), y_bytes = std::as_bytes(std::span(y));
      s_tm1.assign(x_bytes.begin(), x_bytes.end());
      s_t.assign(y_bytes.begin(), y_bytes.end());
    }
    for (const int mask : RandomInts(spec.batch, 1 << 20, name + " masks")) masks.push_back(mask);
    if (spec.batch > 1) discounts[1] = 0;
  }

  LearnerBatch View() const {
    return {.s_tm1 = s_tm1,
            .s_t = s_t,
            .a_tm1 = actions,
            .r_t = rewards,
            .discount_t = discounts,
            .weights = weights,
            .masks = masks};
  }

  std::vector<std::byte> s_tm1, s_t;
  std::vector<std::int32_t> actions;
  std::vector<float> rewards, discounts, weights;
  std::vector<std::uint64_t> masks;
};

// Sets random parameters and zero updates.
inline void Initialize(Learner& learner) {
  RandomStream online(1, "online"), target(1, "target");
  InitializeUniform(learner.layout(), online, learner.State().online);
  InitializeUniform(learner.layout(), target, learner.State().target);
  learner.CommitState(0);
}

}  // namespace uper
