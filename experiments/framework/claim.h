#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "uper/stats/bootstrap.h"

namespace uper::experiments {

enum class Verdict { kHolds, kFails, kUndecided };

// One empirical claim of the paper with what the numbers say about it. The statistic is fixed
// before the experiment is run; a claim that fails is a finding, not an error.
struct Claim {
  std::string id;              // number in docs/claims.md, with a letter when it has parts: "4a"
  std::string statement;       // what the paper says
  std::string where_in_paper;  // "L349": line of the paper's LaTeX source
  std::string statistic;       // what is computed, and which side supports the claim
  Interval interval;           // its value with the 95 % interval
  Verdict verdict = Verdict::kUndecided;
};

// The words around a claim; the numbers are added by the functions below.
struct ClaimText {
  std::string id;
  std::string statement;
  std::string where_in_paper;
  std::string statistic;
};

// Claims "the mean of `per_seed` is positive" (a paired bootstrap over seeds): holds when the whole
// interval is above 0, fails when it is wholly below 0 (or at 0 with no spread), else undecided.
Claim ClaimPositive(ClaimText text, std::span<const double> per_seed);
// Claims "the mean of `per_seed` lies within +-margin of 0": holds when the whole interval is
// inside, fails when it is wholly outside, else undecided.
Claim ClaimWithin(ClaimText text, std::span<const double> per_seed, double margin);
// For statements without sampling noise (identities, closed forms): the value is its own interval.
Claim ClaimExact(ClaimText text, double value, bool holds);

std::string VerdictName(Verdict verdict);

// Writes claims.json: a list of {id, statement, where_in_paper, statistic, value, ci_low, ci_high,
// verdict}; a bound that is not finite is null.
void WriteClaims(const std::filesystem::path& file, std::span<const Claim> claims);

}  // namespace uper::experiments
