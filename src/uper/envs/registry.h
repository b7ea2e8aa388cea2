#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "uper/base/random.h"
#include "uper/envs/environment.h"
#include "uper/envs/options.h"
#include "uper/envs/wrappers/wrap_environment.h"

namespace uper {

// Names the random streams of one environment. Equal ones play alike, environments of different
// index are independent.
struct EnvironmentStreams {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;

  RandomStream Main() const { return {seed, "environment", index}; }
};

// The description of an environment, and the functions that make and check it.
struct EnvironmentEntry {
  using Describe = std::function<EnvironmentSpec(const EnvironmentOptions&)>;
  using Make = std::function<std::unique_ptr<Environment>(const EnvironmentOptions&,
                                                          const EnvironmentStreams&)>;
  using Check = std::function<void(const EnvironmentOptions&)>;

  // The name that users write: lower-case letters, digits and _ . - /, as in "minatar/breakout".
  std::string name;
  // The bare environment; MakeEnvironment() adds noise and limits. REQUIRES: what `make` returns
  // has the specification that `describe` returns.
  Describe describe;
  Make make;
  // Throws the Error that `make` would throw, if there may be one. Optional.
  Check check = {};
  // Why it cannot be made in this program. Such an environment is described, but not listed.
  std::string unavailable_because = {};

  // The values that stand for "the environment's own" in the options.
  EnvironmentDefaults defaults = {};
  // Fills in values of "the environment's own" that depend on other options. Optional.
  std::function<void(EnvironmentOptions&)> resolve = {};
  // Each kind of noise that the options leave off is that of NoisyMinAtarOptions().
  bool noisy_suite = false;

  // The folder of configs/ with the settings of the agents: "minatar" or "atari".
  std::string protocol = "minatar";
  // Keys in TOML that the environment changes in the settings of every agent.
  std::string settings = {};
  // The torso for network.torso = "auto": "mlp", "minatar" or "nature".
  std::string torso = "mlp";
};

// Adds an environment to the registry. Every command then accepts it. Throws Error(kUsage) if the
// name is taken or malformed, or a required field is empty. Not thread-safe: call it at the start
// of the program.
void RegisterEnvironment(EnvironmentEntry entry);

// Null if there is no such environment. The entry lives as long as the program.
const EnvironmentEntry* FindEnvironment(std::string_view name);

// Every environment that can be made, in the order in which they are listed to users.
std::vector<std::string> EnvironmentNames();

// The functions below throw Error(kUsage) for an unknown name, with the nearest one, and for
// options out of range.

// Describes what MakeEnvironment() makes, without making it. Needs no emulator and no ROM.
EnvironmentSpec SpecFor(std::string_view name, const EnvironmentOptions& options);

// Throws what MakeEnvironment() would throw, such as Error(kMissingData) for a missing ROM.
void CheckEnvironment(std::string_view name, const EnvironmentOptions& options);

// The options with a value in each place that says "the environment's own". Equal rules of play
// have equal results. Mode and difficulty of an Atari game stay: only the emulator knows their
// defaults. Leaves an unknown environment's options as they are, except for -1, which becomes 0.
EnvironmentOptions ResolvedOptions(std::string_view name, EnvironmentOptions options);

// Makes an environment with the noise and limits of the options.
std::unique_ptr<Environment> MakeEnvironment(std::string_view name,
                                             const EnvironmentOptions& options, std::uint64_t seed,
                                             std::uint64_t index);

}  // namespace uper
