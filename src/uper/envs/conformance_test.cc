#include "uper/envs/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "uper/base/random.h"
#include "uper/envs/registry.h"

namespace uper {
namespace {

using Problems = std::vector<std::string>;

struct Setting {
  std::string title;
  EnvironmentOptions options;
};

std::vector<Setting> Settings() {
  return {
      {"plain", {}},
      {"minimal_actions", {.minimal_actions = true}},
      {"without_ramping", {.difficulty_ramping = false}},
      {"noisy_minatar", NoisyMinAtarOptions()},
      {"everything",
       {.sticky = 0.25,
        .time_limit_frames = 37,
        .reward_noise_sd = 2,
        .noisy_channels = 3,
        .random_action_probability = 0.1}},
  };
}

class EveryEnvironmentTest : public testing::TestWithParam<std::string> {};

TEST_P(EveryEnvironmentTest, Conforms) {
  for (const Setting& setting : Settings()) {
    const auto make = [&](std::uint64_t seed, std::uint64_t index) {
      return MakeEnvironment(GetParam(), setting.options, seed, index);
    };
    EXPECT_EQ(ConformanceProblems(make), Problems{}) << setting.title;
  }
}

// Atari has its own test: its states are large and its steps are slow.
std::vector<std::string> SmallEnvironments() {
  std::vector<std::string> names = EnvironmentNames();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("atari/"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryEnvironmentTest, testing::ValuesIn(SmallEnvironments()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           std::string name = test.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '/' || c == '-'; }, '_');
                           return name;
                         });

TEST(ConformanceTest, GameWithoutDrawsConformsWhenThatIsSaid) {
  const auto make = [](std::uint64_t seed, std::uint64_t index) {
    return MakeEnvironment("minatar/space_invaders", {.sticky = 0}, seed, index);
  };
  EXPECT_EQ(ConformanceProblems(make, {.is_random = false}), Problems{});
  EXPECT_EQ(ConformanceProblems(make),
            (Problems{"another index plays alike", "another seed plays alike"}));
}

// The defects of a bad environment.
enum class Defect {
  kNone,
  kIgnoresIndex,
  kIgnoresSeed,
  kDrawsFromElsewhere,
  kLeavesByteUnwritten,
  kWritesBeside,
  kElementOutOfRange,
  kTerminatesAndTruncates,
  kBootstrapsAtTermination,
  kDiscountsAtTruncation,
  kPlaysMoreFrames,
  kRewardIsNan,
  kForgetsDraws,
  kForgetsSteps,
  kSavingDraws,
  kAcceptsDamage,
};

// A counter of 1 to 6 steps with random rewards: 2 observed elements, the second one constant.
class FaultyEnvironment final : public Environment {
 public:
  FaultyEnvironment(Defect defect, std::uint64_t seed, std::uint64_t index)
      : defect_(defect),
        stream_(Has(Defect::kIgnoresSeed) ? 0 : seed, "faulty",
                Has(Defect::kIgnoresIndex) ? 0 : index) {}

  const EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override {
    steps_ = 0;
    Observe(observation);
  }

  TimeStep DoStep(int action, std::span<std::byte> observation) override {
    ++steps_;
    Observe(observation);
    TimeStep step = {.reward = action + stream_.Uniform()};
    static int elsewhere = 0;
    if (Has(Defect::kDrawsFromElsewhere)) step.reward += (elsewhere++) % 7;
    if (Has(Defect::kRewardIsNan) && steps_ == 2) step.reward = std::nan("");
    step.terminated = steps_ == 6;
    step.truncated = !step.terminated && step.reward < 0.1;
    if (Has(Defect::kTerminatesAndTruncates)) step.truncated |= step.terminated;
    step.discount = step.terminated ? 0 : 1;
    if (Has(Defect::kBootstrapsAtTermination)) step.discount = 1;
    if (Has(Defect::kDiscountsAtTruncation) && step.truncated) step.discount = 0;
    if (Has(Defect::kPlaysMoreFrames) && steps_ == 3) step.frames = 2;
    return step;
  }

  void DoSaveState(ByteWriter& writer) const override {
    if (Has(Defect::kSavingDraws)) stream_.Uniform();
    writer.Write(Has(Defect::kForgetsDraws) ? std::uint64_t{0} : stream_.position());
    writer.Write(Has(Defect::kForgetsSteps) ? 0 : steps_);
  }

  void DoRestoreState(ByteReader& reader) override {
    stream_.set_position(reader.Read<std::uint64_t>());
    if (Has(Defect::kAcceptsDamage) && reader.remaining() < sizeof(steps_)) {
      while (reader.remaining() > 0) reader.Read<std::uint8_t>();
    } else {
      steps_ = reader.ReadInRange(0, 6);
    }
  }

 private:
  bool Has(Defect defect) const { return defect_ == defect; }

  void Observe(std::span<std::byte> observation) const {
    observation[0] = static_cast<std::byte>(Has(Defect::kElementOutOfRange) ? 20 + steps_ : steps_);
    if (!Has(Defect::kLeavesByteUnwritten)) observation[1] = std::byte{0};
    if (Has(Defect::kWritesBeside)) *(observation.data() + 2) = std::byte{0};
  }

  const Defect defect_;
  const EnvironmentSpec spec_ = {.name = "faulty", .actions = 2, .channels = 2, .element_max = 6};
  mutable RandomStream stream_;
  int steps_ = 0;
};

Problems ProblemsOf(Defect defect) {
  return ConformanceProblems([&](std::uint64_t seed, std::uint64_t index) {
    return std::make_unique<FaultyEnvironment>(defect, seed, index);
  });
}

TEST(ConformanceTest, FindsEachDefectAndNothingElse) {
  const auto expect = [](Defect defect, const std::string& problem) {
    const Problems problems = ProblemsOf(defect);
    EXPECT_NE(std::find(problems.begin(), problems.end(), problem), problems.end())
        << "not found: " << problem << "; found: " << testing::PrintToString(problems);
  };
  EXPECT_EQ(ProblemsOf(Defect::kNone), Problems{});
  EXPECT_EQ(ProblemsOf(Defect::kIgnoresIndex), Problems{"another index plays alike"});
  EXPECT_EQ(ProblemsOf(Defect::kIgnoresSeed), Problems{"another seed plays alike"});
  expect(Defect::kDrawsFromElsewhere,
         "equal seed and index play differently, or a byte was not written");
  expect(Defect::kLeavesByteUnwritten, "an element is out of range, or a byte was not written");
  expect(Defect::kWritesBeside, "memory beside the observation was written");
  expect(Defect::kElementOutOfRange, "an element is out of range, or a byte was not written");
  expect(Defect::kTerminatesAndTruncates, "a step terminated and truncated");
  expect(Defect::kPlaysMoreFrames, "a step of more frames than the spec says");
  EXPECT_EQ(ProblemsOf(Defect::kBootstrapsAtTermination),
            Problems{"discount not 0 at a termination"});
  EXPECT_EQ(ProblemsOf(Defect::kDiscountsAtTruncation),
            Problems{"discount not 1 without a termination"});
  EXPECT_EQ(ProblemsOf(Defect::kRewardIsNan), Problems{"a reward is not finite"});
  EXPECT_EQ(ProblemsOf(Defect::kForgetsDraws),
            Problems{"a restored environment continues differently"});
  expect(Defect::kForgetsSteps, "a restored environment continues differently");
  expect(Defect::kSavingDraws, "saving a state changed the play");
  EXPECT_EQ(ProblemsOf(Defect::kAcceptsDamage), Problems{"a truncated state is accepted"});
}

}  // namespace
}  // namespace uper
