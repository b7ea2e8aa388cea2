#include "uper/envs/registry.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "uper/base/did_you_mean.h"
#include "uper/base/error.h"
#include "uper/envs/atari/atari_environment.h"
#include "uper/envs/atari/games.h"
#include "uper/envs/bandit/bandit_environment.h"
#include "uper/envs/grid/grid_environment.h"
#include "uper/envs/minatar/minatar_environment.h"
#include "uper/envs/wrappers/wrap_environment.h"

namespace uper {
namespace {

// Seed and index name the environment's random streams.
struct Streams {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;

  RandomStream Main() const { return {seed, "environment", index}; }
};

// Makes the bare environment.
using MakeBare =
    std::function<std::unique_ptr<Environment>(const EnvironmentOptions&, const Streams&)>;

struct Maker {
  std::string name;
  MakeBare make;
  EnvironmentDefaults defaults = {};
  bool noisy_suite = false;  // noise that the options leave off is the suite's
};

Maker BanditMaker(const std::string& name, double mean_spread) {
  return {name, [=](const EnvironmentOptions&, const Streams& streams) {
            return std::make_unique<BanditEnvironment>(
                name, ConalBanditOptions{.mean_spread = mean_spread}, streams.Main());
          }};
}

Maker GridMaker(const std::string& name) {
  return {name, [=](const EnvironmentOptions&, const Streams& streams) {
            return std::make_unique<GridEnvironment>(name, DefaultGridMap(), NoisyGridOptions{},
                                                     streams.Main());
          }};
}

Maker MinAtarMaker(const std::string& name, const std::string& game, bool noisy_suite) {
  return {name,
          [=](const EnvironmentOptions& options, const Streams& streams) {
            return std::make_unique<MinAtarEnvironment>(
                name, game, options.difficulty_ramping, options.minimal_actions,
                std::make_unique<StreamGameRandom>(streams.Main()));
          },
          {.sticky = MinAtarEnvironment::kDefaultSticky},
          noisy_suite};
}

// The suite's noise in place of each kind that is off.
EnvironmentOptions WithSuiteNoise(EnvironmentOptions options) {
  const EnvironmentOptions suite = NoisyMinAtarOptions();
  if (options.reward_noise_sd == 0) {
    options.reward_noise_sd = suite.reward_noise_sd;
    options.reward_noise_share = suite.reward_noise_share;
  }
  if (options.noisy_channels == 0) options.noisy_channels = suite.noisy_channels;
  return options;
}

Maker AtariMaker(const std::string& game) {
  return {"atari/" + game,
          [=](const EnvironmentOptions& options, const Streams& streams) {
            return MakeAtariEnvironment(game, options, streams.seed, streams.index);
          },
          {.applies_sticky_itself = true, .time_limit_frames = kAtariTimeLimitFrames}};
}

// A further family of environments is a further list of makers, appended here.
std::vector<Maker> MakeMakers() {
  std::vector<Maker> makers = {BanditMaker("bandit/conal", 0), BanditMaker("bandit/shifted", 1),
                               GridMaker("grid/noisy")};
  for (const bool noisy : {false, true}) {
    for (const std::string& game : minatar::GameNames()) {
      makers.push_back(MinAtarMaker((noisy ? "noisy-minatar/" : "minatar/") + game, game, noisy));
    }
  }
  if (!atari::EmulatorAvailable()) return makers;
  for (const atari::Game& game : atari::kGames) {
    makers.push_back(AtariMaker(std::string(game.name)));
  }
  return makers;
}

const std::vector<Maker>& Makers() {
  static const std::vector<Maker> makers = MakeMakers();
  return makers;
}

}  // namespace

std::vector<std::string> EnvironmentNames() {
  std::vector<std::string> names;
  for (const Maker& maker : Makers()) names.push_back(maker.name);
  return names;
}

std::unique_ptr<Environment> MakeEnvironment(std::string_view name,
                                             const EnvironmentOptions& options, std::uint64_t seed,
                                             std::uint64_t index) {
  const auto maker = std::find_if(Makers().begin(), Makers().end(),
                                  [&](const Maker& known) { return known.name == name; });
  if (maker == Makers().end()) {
    if (name.starts_with("atari/") && !atari::EmulatorAvailable()) {
      throw Error(ErrorKind::kMissingData, "environment '" + std::string(name) + "': Atari is " +
                                               atari::EmulatorDescription());
    }
    throw Error(ErrorKind::kUsage, "unknown environment '" + std::string(name) + "'" +
                                       DidYouMean(name, EnvironmentNames()) +
                                       "; `uper list envs` shows all");
  }
  options.Validate();
  const EnvironmentOptions actual = maker->noisy_suite ? WithSuiteNoise(options) : options;
  return WrapEnvironment(maker->make(actual, {.seed = seed, .index = index}), actual,
                         maker->defaults, seed, index);
}

}  // namespace uper
