#include "experiments/framework/claim.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "uper/base/files/atomic_file.h"

namespace uper::experiments {
namespace {

Claim Filled(ClaimText text, Interval interval, Verdict verdict) {
  return {.id = std::move(text.id),
          .statement = std::move(text.statement),
          .where_in_paper = std::move(text.where_in_paper),
          .statistic = std::move(text.statistic),
          .interval = interval,
          .verdict = verdict};
}

nlohmann::ordered_json Number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

Claim ClaimPositive(ClaimText text, std::span<const double> per_seed) {
  const Interval interval = BootstrapMean(per_seed);
  Verdict verdict = Verdict::kUndecided;
  if (interval.low > 0) {
    verdict = Verdict::kHolds;
  } else if (interval.high < 0 || (interval.low == 0 && interval.high == 0)) {
    verdict = Verdict::kFails;
  }
  return Filled(std::move(text), interval, verdict);
}

Claim ClaimWithin(ClaimText text, std::span<const double> per_seed, double margin) {
  const Interval interval = BootstrapMean(per_seed);
  Verdict verdict = Verdict::kUndecided;
  if (interval.low >= -margin && interval.high <= margin) {
    verdict = Verdict::kHolds;
  } else if (interval.low > margin || interval.high < -margin) {
    verdict = Verdict::kFails;
  }
  return Filled(std::move(text), interval, verdict);
}

Claim ClaimExact(ClaimText text, double value, bool holds) {
  return Filled(std::move(text), {.value = value, .low = value, .high = value},
                holds ? Verdict::kHolds : Verdict::kFails);
}

std::vector<Claim> TestClaims(std::span<const ClaimRow> table) {
  std::vector<Claim> claims;
  for (const ClaimRow& row : table) {
    for (Claim& claim : row.test(row.text)) claims.push_back(std::move(claim));
  }
  return claims;
}

ClaimTest Positive(std::vector<double> per_seed) {
  return [per_seed = std::move(per_seed)](const ClaimText& text) {
    return std::vector{ClaimPositive(text, per_seed)};
  };
}

ClaimTest Within(std::vector<double> per_seed, double margin) {
  return [per_seed = std::move(per_seed), margin](const ClaimText& text) {
    return std::vector{ClaimWithin(text, per_seed, margin)};
  };
}

ClaimTest Exact(double value, bool holds) {
  return
      [value, holds](const ClaimText& text) { return std::vector{ClaimExact(text, value, holds)}; };
}

std::string VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kFails:
      return "fails";
    case Verdict::kUndecided:
      return "undecided";
  }
  return "undecided";
}

void WriteClaims(const std::filesystem::path& file, std::span<const Claim> claims) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Claim& claim : claims) {
    list.push_back({{"id", claim.id},
                    {"statement", claim.statement},
                    {"where_in_paper", claim.where_in_paper},
                    {"statistic", claim.statistic},
                    {"value", Number(claim.interval.value)},
                    {"ci_low", Number(claim.interval.low)},
                    {"ci_high", Number(claim.interval.high)},
                    {"verdict", VerdictName(claim.verdict)}});
  }
  WriteFileAtomically(file, list.dump(2) + "\n");
}

}  // namespace uper::experiments
