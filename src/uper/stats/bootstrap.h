#pragma once

#include <cstdint>
#include <span>

namespace uper {

// An estimate with its 95 % interval.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Mean of `per_seed` with the percentile bootstrap interval (2.5 % to 97.5 %) over seeds. For a
// paired comparison pass the per-seed differences. Deterministic: the resamples depend on the
// number of seeds alone, so that all comparisons of one experiment share them. With one seed the
// interval is unbounded: a single run shows no spread. REQUIRES: not empty.
Interval BootstrapMean(std::span<const double> per_seed, int replications = 10'000);

// Linear-interpolation quantile of sorted values (the usual definition, "type 7").
// REQUIRES: not empty, sorted, 0 <= probability <= 1.
double SortedQuantile(std::span<const double> sorted, double probability);

}  // namespace uper
