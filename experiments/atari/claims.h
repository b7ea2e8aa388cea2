#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/framework/claim.h"
#include "uper/stats/score_table.h"

namespace uper::experiments::atari {

// The paper's claims about Atari. Statistics are paired by seed. A seed counts if both agents have
// it in all games of the comparison. A claim whose runs are missing is "undecided"; it has a reason
// instead of a value.

// L366: the median is above the baselines throughout; L380: above QR-ENS-PER and QR-PER.
std::vector<Claim> MedianClaims(const ScoreTable& table);
// L1182: above UNI, EPI and PER on the same ensemble.
std::vector<Claim> AblationClaims(const ScoreTable& table);
// L366, L380: UPER is better in most games, and where it is worse the difference is smaller.
std::vector<Claim> BarsClaims(const ScoreTable& table, std::span<const std::string> baselines);
// L366: the games that the caption names.
std::vector<Claim> GamesClaims(const ScoreTable& table);
// L1227: C51 with UPER is better than with PER in 4 of 5 games.
std::vector<Claim> C51Claims(const ScoreTable& table);

}  // namespace uper::experiments::atari
