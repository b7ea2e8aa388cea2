#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "uper/stats/bootstrap.h"

namespace uper::experiments {

enum class Verdict { kHolds, kFails, kUndecided };

// One empirical claim of the paper, with its statistic and its verdict. The statistic is fixed
// before the experiment runs. A claim that fails is a result, not an error.
struct Claim {
  std::string id;              // number in docs/claims.md, with a letter if it has parts: "4a"
  std::string statement;       // what the paper says
  std::string where_in_paper;  // "L349": line of the paper's LaTeX source
  std::string statistic;       // what is computed, and which side supports the claim
  Interval interval;           // value of the statistic with its 95 % interval
  Verdict verdict = Verdict::kUndecided;
};

// The words of a claim. The functions below add the numbers.
struct ClaimText {
  std::string id;
  std::string statement;
  std::string where_in_paper;
  std::string statistic;
};

// Claims that the mean of `per_seed` is positive, by a paired bootstrap over seeds. Holds if the
// whole interval is above 0. Fails if it is below 0, or at 0 without any spread. Else undecided.
Claim ClaimPositive(ClaimText text, std::span<const double> per_seed);
// Claims that the mean of `per_seed` lies within +-margin of 0. Holds if the whole interval is
// inside, fails if it is wholly outside, else undecided.
Claim ClaimWithin(ClaimText text, std::span<const double> per_seed, double margin);
// For statements without sampling noise (identities, closed forms): the interval is the value.
Claim ClaimExact(ClaimText text, double value, bool holds);

// Figures list their claims as tables. A row has the words of one claim and the test of its
// statistic. The test may return several claims, for example one per panel.
using ClaimTest = std::function<std::vector<Claim>(const ClaimText& text)>;
struct ClaimRow {
  ClaimText text;
  ClaimTest test;
};
std::vector<Claim> TestClaims(std::span<const ClaimRow> table);

// Tests for rows: one claim each, as the function of the similar name above makes it.
ClaimTest Positive(std::vector<double> per_seed);
ClaimTest Within(std::vector<double> per_seed, double margin);
ClaimTest Exact(double value, bool holds);

std::string VerdictName(Verdict verdict);

// Writes claims.json: a list of {id, statement, where_in_paper, statistic, value, ci_low, ci_high,
// verdict}. A number that is not finite becomes null.
void WriteClaims(const std::filesystem::path& file, std::span<const Claim> claims);

}  // namespace uper::experiments
