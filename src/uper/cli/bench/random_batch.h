#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/cli/commands.h"
#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper::cli {

// The subject of the learner benchmarks: an agent, a network and random data for it.

// Describes the network's input. No environment is made.
EnvironmentSpec ObservationsOf(const BenchLearnerOptions& options);
RunConfig ConfigOf(const BenchLearnerOptions& options);

// Random transitions in the form in which the replay memory gives them.
class RandomBatch {
 public:
  RandomBatch(const RunConfig& config, const LearnerSpec& spec,
              const EnvironmentSpec& observations);

  LearnerBatch View() const {
    return {.s_tm1 = s_tm1_,
            .s_t = s_t_,
            .a_tm1 = a_tm1_,
            .r_t = r_t_,
            .discount_t = discount_t_,
            .weights = weights_,
            .masks = masks_};
  }
  std::span<const std::byte> Observations(int count) const {
    return std::span(s_tm1_).first(s_tm1_.size() / a_tm1_.size() * count);
  }

 private:
  std::vector<std::byte> s_tm1_, s_t_;
  std::vector<std::int32_t> a_tm1_;
  std::vector<float> r_t_, discount_t_, weights_;
  std::vector<std::uint64_t> masks_;
};

}  // namespace uper::cli
