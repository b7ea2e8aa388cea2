#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace uper {

// A published set of rules for Atari; docs/atari.md says what is in each.
enum class AtariProtocol { kDqnZoo, kDopamine };

// How an environment is played, apart from its rules: the table [environment] of a configuration.
// With the defaults every environment is played as published, without injected noise.
struct EnvironmentOptions {
  // Probability that a step repeats the action executed last instead of the one given.
  // -1: the environment's own (MinAtar 0.1, Atari with protocol dopamine 0.25, else 0). A step is a
  // frame on Atari.
  double sticky = -1;
  // MinAtar: the game becomes harder as it goes on (asterix, seaquest, space_invaders).
  bool difficulty_ramping = true;
  // MinAtar: only the actions that do something in the game. Published results use all six.
  bool minimal_actions = false;
  // An episode is cut off (truncated, the agent bootstraps) after this many frames. 0: never.
  // -1: the environment's own (Atari 108,000, else never).
  std::int64_t time_limit_frames = -1;

  // Atari only.

  AtariProtocol protocol = AtariProtocol::kDqnZoo;
  // Folder with GAME.bin files. Empty: the one of the set-up.
  std::string rom_dir;
  // All 18 actions instead of those that the game uses.
  bool full_action_set = false;
  // Mode and difficulty of the game; -1: its default.
  int mode = -1;
  int difficulty = -1;
  // A lost life ends the episode.
  bool episodic_life = false;
  // Width and height of an observation.
  int frame_size = 84;
  // An episode starts with 1 to this many idle frames; 0: none; -1: the protocol's (30 or 0).
  int noop_max_frames = -1;
  // Every game starts from the state after the first reset of the console, which takes no time.
  // Otherwise the console is reset for each game, and what it played before can have an effect.
  bool cached_reset = true;

  // Injected noise. Each kind draws from a stream of its own, so that switching one on changes no
  // draw of the game or of another kind.

  // Standard deviation of a Gaussian added to the reward. 0: none.
  double reward_noise_sd = 0;
  // Share of the states whose steps get reward noise. A state is noisy when a fixed hash of the
  // observation in which the action is taken falls below the share: the same states in every run.
  double reward_noise_share = 1;
  // "Noisy TV": this many further channels whose cells are 0 or 1 at random at each step.
  int noisy_channels = 0;
  // Probability that the action is replaced by one drawn uniformly from all.
  double random_action_probability = 0;

  // Throws Error(kUsage) that names the field and its range.
  void Validate() const;

  friend bool operator==(const EnvironmentOptions&, const EnvironmentOptions&) = default;
};

// The values that a number of EnvironmentOptions may have.
struct OptionRange {
  using Field = std::variant<int EnvironmentOptions::*, std::int64_t EnvironmentOptions::*,
                             double EnvironmentOptions::*>;

  std::string_view name;  // of the field, and of its key in a configuration
  Field field;
  double low = 0;
  double high = 0;                  // inclusive
  std::string_view minus_one = {};  // what -1 stands for; empty: -1 is not special

  constexpr bool Contains(double value) const {  // false for NaN
    return (low <= value && value <= high) || (!minus_one.empty() && value == -1);
  }
};

// The only statement of the ranges: Validate() and the configuration read it.
inline constexpr OptionRange kOptionRanges[] = {
    {"sticky", &EnvironmentOptions::sticky, 0, 1, "the environment's own"},
    {"time_limit_frames", &EnvironmentOptions::time_limit_frames, 0, 0x1p53,
     "the environment's own"},  // 2^53: doubles are exact up to here
    {"mode", &EnvironmentOptions::mode, 0, 255, "the game's default"},
    {"difficulty", &EnvironmentOptions::difficulty, 0, 255, "the game's default"},
    {"frame_size", &EnvironmentOptions::frame_size, 16, 160},  // 160: the width of the screen
    {"noop_max_frames", &EnvironmentOptions::noop_max_frames, 0, 10'000, "the protocol's"},
    {"reward_noise_sd", &EnvironmentOptions::reward_noise_sd, 0, 1e6},
    {"reward_noise_share", &EnvironmentOptions::reward_noise_share, 0, 1},
    {"noisy_channels", &EnvironmentOptions::noisy_channels, 0, 64},
    {"random_action_probability", &EnvironmentOptions::random_action_probability, 0, 1},
};

// The suite `noisy-minatar`: the five MinAtar games as published, plus noise that no agent can
// learn away. In a quarter of the states a Gaussian of standard deviation 1 is added to the reward.
// The games' own rewards are mostly 0 and 1, so a replay memory that trusts the size of the TD
// error keeps drawing these states. One channel shows random cells, so no two frames are alike.
// Dynamics, action set and sticky probability stay the games' own.
EnvironmentOptions NoisyMinAtarOptions();

}  // namespace uper
