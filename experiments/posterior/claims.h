#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "experiments/framework/claim.h"
#include "experiments/posterior/model.h"

namespace uper::experiments::posterior {

// Claims 27, 28 and 29 of docs/claims.md. `traces` has one element per seed.
std::vector<Claim> PosteriorClaims(const PosteriorOptions& options,
                                   std::span<const PosteriorTrace> traces);

// The data distribution's quantile at the midpoint of quantile i.
double TrueQuantile(const PosteriorOptions& options, std::size_t i);

// Pearson's correlation, or 0 if one of the two is constant. REQUIRES: equal sizes, not empty.
double Correlation(std::span<const double> x, std::span<const double> y);

}  // namespace uper::experiments::posterior
