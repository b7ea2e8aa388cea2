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

// The scores built into the program: the 57 Atari games (DQN Zoo's table) and the five MinAtar
// games (data/README.md describes their scores).
ReferenceScores BuiltInReferenceScores();

// From CSV with the columns `env` (or `game`, which then stands for the suite's game), `random` and
// `human` (or `reference`). `known` lists the existing environments; empty: any name is accepted.
// Throws Error(kUsage), with source, line and environment, for an unknown or repeated environment
// and for scores that are equal, missing or not finite. Throws Error(kCorrupt) if the text is no
// such file.
ReferenceScores ParseReferenceScores(std::string_view text, const std::string& source,
                                     std::string_view suite,
                                     std::span<const std::string> known = {});

}  // namespace uper
