#include "uper/envs/registry.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "uper/base/check.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/error.h"
#include "uper/envs/atari/atari_environment.h"
#include "uper/envs/atari/games.h"
#include "uper/envs/bandit/bandit_environment.h"
#include "uper/envs/grid/grid_environment.h"
#include "uper/envs/minatar/minatar_environment.h"

namespace uper {
namespace {

EnvironmentEntry BanditEntry(const std::string& name, double mean_spread) {
  const ConalBanditOptions bandit{.mean_spread = mean_spread};
  return {.name = name,
          .describe = [=](const auto&) { return BanditEnvironment::Describe(name, bandit); },
          .make =
              [=](const auto&, const EnvironmentStreams& streams) {
                return std::make_unique<BanditEnvironment>(name, bandit, streams.Main());
              }};
}

EnvironmentEntry GridEntry(const std::string& name) {
  return {
      .name = name,
      .describe = [=](const auto&) { return GridEnvironment::Describe(name, DefaultGridMap()); },
      .make =
          [=](const auto&, const EnvironmentStreams& streams) {
            return std::make_unique<GridEnvironment>(name, DefaultGridMap(), NoisyGridOptions{},
                                                     streams.Main());
          }};
}

EnvironmentEntry MinAtarEntry(const std::string& name, const std::string& game, bool noisy_suite) {
  return {.name = name,
          .describe =
              [=](const EnvironmentOptions& options) {
                return MinAtarEnvironment::Describe(name, game, options.minimal_actions);
              },
          .make =
              [=](const EnvironmentOptions& options, const EnvironmentStreams& streams) {
                return std::make_unique<MinAtarEnvironment>(
                    name, game, options.difficulty_ramping, options.minimal_actions,
                    std::make_unique<StreamGameRandom>(streams.Main()));
              },
          .defaults = {.sticky = MinAtarEnvironment::kDefaultSticky},
          .noisy_suite = noisy_suite,
          .torso = "minatar"};
}

// Sticky actions and idle frames are the protocol's.
void ResolveAtari(EnvironmentOptions& options) {
  const AtariRules rules = ProtocolRules(options);
  options.sticky = rules.sticky;
  options.noop_max_frames = rules.noop_max_frames;
}

EnvironmentEntry AtariEntry(const atari::Game& game) {
  return {.name = "atari/" + std::string(game.name),
          .describe =
              [&game](const EnvironmentOptions& options) { return DescribeAtari(game, options); },
          .make =
              [&game](const EnvironmentOptions& options, const EnvironmentStreams& streams) {
                return MakeAtariEnvironment(game, options, streams.seed, streams.index);
              },
          .check = [&game](const EnvironmentOptions& options) { CheckAtari(game, options); },
          .unavailable_because =
              atari::EmulatorAvailable() ? "" : "Atari is " + atari::EmulatorDescription(),
          .defaults = {.applies_sticky_itself = true, .time_limit_frames = kAtariTimeLimitFrames},
          .resolve = ResolveAtari,
          .protocol = "atari",
          .torso = "nature"};
}

using Registry = std::deque<EnvironmentEntry>;  // keeps entries in place when it grows

// Append a further family of environments here.
Registry BuildRegistry() {
  Registry registry = {BanditEntry("bandit/conal", 0), BanditEntry("bandit/shifted", 1),
                       GridEntry("grid/noisy")};
  for (const bool noisy : {false, true}) {
    for (const std::string& game : minatar::GameNames()) {
      registry.push_back(MinAtarEntry((noisy ? "noisy-minatar/" : "minatar/") + game, game, noisy));
    }
  }
  for (const atari::Game& game : atari::kGames) registry.push_back(AtariEntry(game));
  return registry;
}

Registry& Entries() {
  static Registry registry = BuildRegistry();
  return registry;
}

const EnvironmentEntry& EntryFor(std::string_view name) {
  if (const EnvironmentEntry* entry = FindEnvironment(name)) return *entry;
  throw Error(ErrorKind::kUsage, "unknown environment '" + std::string(name) + "'" +
                                     DidYouMean(name, EnvironmentNames()) +
                                     "; `uper list envs` shows all");
}

const EnvironmentEntry& AvailableEntry(std::string_view name) {
  const EnvironmentEntry& entry = EntryFor(name);
  if (entry.unavailable_because.empty()) return entry;
  throw Error(ErrorKind::kMissingData,
              "environment '" + std::string(name) + "': " + entry.unavailable_because);
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

// The options that the environment is made with.
EnvironmentOptions ActualOptions(const EnvironmentEntry& entry, const EnvironmentOptions& options) {
  options.Validate();
  return entry.noisy_suite ? WithSuiteNoise(options) : options;
}

bool IsNameCharacter(char c) {
  return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') ||
         std::string_view("_.-/").find(c) != std::string_view::npos;
}

}  // namespace

void RegisterEnvironment(EnvironmentEntry entry) {
  const auto require = [&](bool condition, const char* why) {
    if (condition) return;
    throw Error(ErrorKind::kUsage, "environment '" + entry.name + "' cannot be registered: " + why);
  };
  require(!entry.name.empty() && std::ranges::all_of(entry.name, IsNameCharacter),
          "a name consists of lower-case letters, digits and _ . - /");
  require(FindEnvironment(entry.name) == nullptr, "the name is taken");
  require(entry.describe != nullptr && entry.make != nullptr, "it needs `describe` and `make`");
  Entries().push_back(std::move(entry));
}

const EnvironmentEntry* FindEnvironment(std::string_view name) {
  const auto found = std::ranges::find(Entries(), name, &EnvironmentEntry::name);
  return found == Entries().end() ? nullptr : &*found;
}

std::vector<std::string> EnvironmentNames() {
  std::vector<std::string> names;
  for (const EnvironmentEntry& entry : Entries()) {
    if (entry.unavailable_because.empty()) names.push_back(entry.name);
  }
  return names;
}

EnvironmentSpec SpecFor(std::string_view name, const EnvironmentOptions& options) {
  const EnvironmentEntry& entry = EntryFor(name);
  const EnvironmentOptions actual = ActualOptions(entry, options);
  return WrappedSpec(entry.describe(actual), actual);
}

void CheckEnvironment(std::string_view name, const EnvironmentOptions& options) {
  const EnvironmentEntry& entry = AvailableEntry(name);
  SpecFor(name, options);
  if (entry.check) entry.check(ActualOptions(entry, options));
}

EnvironmentOptions ResolvedOptions(std::string_view name, EnvironmentOptions options) {
  const EnvironmentEntry* entry = FindEnvironment(name);
  const EnvironmentDefaults own = entry != nullptr ? entry->defaults : EnvironmentDefaults{};
  if (entry != nullptr && entry->resolve) entry->resolve(options);
  if (options.sticky < 0) options.sticky = own.sticky;
  if (options.time_limit_frames < 0) options.time_limit_frames = own.time_limit_frames;
  return options;
}

std::unique_ptr<Environment> MakeEnvironment(std::string_view name,
                                             const EnvironmentOptions& options, std::uint64_t seed,
                                             std::uint64_t index) {
  const EnvironmentEntry& entry = AvailableEntry(name);
  const EnvironmentOptions actual = ActualOptions(entry, options);
  std::unique_ptr<Environment> bare = entry.make(actual, {.seed = seed, .index = index});
  UPER_CHECK(bare->spec() == entry.describe(actual),
             entry.name + " is not what its registry entry describes");
  return WrapEnvironment(std::move(bare), actual, entry.defaults, seed, index);
}

}  // namespace uper
