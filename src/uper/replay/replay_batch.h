#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/replay/replay_buffer.h"

namespace uper {

// The caller's memory for a batch of transitions (it may be pinned for a GPU). All spans have
// `batch` entries, except the observations: [batch, observation_bytes].
struct BatchView {
  SampleView sample;  // ids, probabilities, importance weights
  std::span<std::byte> s_tm1;
  std::span<std::byte> s_t;
  std::span<std::int32_t> a_tm1;
  std::span<float> r_t;
  std::span<float> discount_t;
  std::span<std::uint64_t> masks;  // bit k: member k learns from it
};

// A batch that owns its memory. Reuse it: then sampling allocates nothing.
struct ReplayBatch {
  ReplayBatch(std::size_t batch, std::size_t observation_bytes)
      : ids(batch),
        probabilities(batch),
        weights(batch),
        s_tm1(batch * observation_bytes),
        s_t(batch * observation_bytes),
        a_tm1(batch),
        r_t(batch),
        discount_t(batch),
        masks(batch) {}

  BatchView view() {
    return {.sample = {.ids = ids, .probabilities = probabilities, .weights = weights},
            .s_tm1 = s_tm1,
            .s_t = s_t,
            .a_tm1 = a_tm1,
            .r_t = r_t,
            .discount_t = discount_t,
            .masks = masks};
  }

  std::vector<std::uint64_t> ids;
  std::vector<double> probabilities;
  std::vector<float> weights;
  std::vector<std::byte> s_tm1;
  std::vector<std::byte> s_t;
  std::vector<std::int32_t> a_tm1;
  std::vector<float> r_t;
  std::vector<float> discount_t;
  std::vector<std::uint64_t> masks;
};

}  // namespace uper
