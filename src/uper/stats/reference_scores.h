#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace uper {

// The scores that stand for 0 and 1 in a game: a random player, and a human (on MinAtar: a
// published agent).
struct ReferenceScore {
  double random = 0;
  double reference = 0;
};

// (score - random) / (reference - random): the human-normalized score.
double NormalizedScore(double score, const ReferenceScore& reference);

// By environment: "atari/pong", "minatar/breakout".
using ReferenceScores = std::map<std::string, ReferenceScore, std::less<>>;

// Those built into the program: the 57 Atari games (DQN Zoo's table) and the five of MinAtar
// (data/README.md says what their scores are).
ReferenceScores BuiltInReferenceScores();

// From CSV with the columns `env` (or `game`, which then stands for the suite's game), `random` and
// `human` (or `reference`). `known`: the environments that there are; empty: any name will do.
// Throws Error(kUsage), with source, line and environment, for one that is not known or is there
// twice and for scores that are equal, missing or not finite; Error(kCorrupt) if it is not such a
// file.
ReferenceScores ParseReferenceScores(std::string_view text, const std::string& source,
                                     std::string_view suite,
                                     std::span<const std::string> known = {});

}  // namespace uper
