// The kernels of ensemble_statistics.h for one instruction set. ensemble_statistics.cc includes
// this file once for each set, in a namespace of its own. It defines before:
//   UPER_INSTRUCTIONS   the name of the set,
//   UPER_TARGET         the attribute of a function that uses the set,
//   UPER_LANES          the number of doubles in a register: 8 (AVX-512), 4 (AVX2) or 2 (any CPU).

// Lambdas do not inherit the attributes of the function around them, so they have them, too.
#define UPER_ATTR UPER_TARGET __attribute__((always_inline))

constexpr int kLanes = UPER_LANES;
constexpr int kParts = 8 / kLanes;

using Vec = double __attribute__((vector_size(8 * kLanes)));
using Integers = std::int64_t __attribute__((vector_size(8 * kLanes)));

// Eight neighbors of a row, or eight partial sums.
struct Eight {
  Vec part[kParts];
};

UPER_ATTR inline Eight operator+(Eight x, const Eight& y) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) x.part[i] += y.part[i];
  return x;
}
UPER_ATTR inline Eight operator-(Eight x, const Eight& y) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) x.part[i] -= y.part[i];
  return x;
}
UPER_ATTR inline Eight operator-(Eight x, double y) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) x.part[i] -= y;
  return x;
}
UPER_ATTR inline Eight operator/(Eight x, double y) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) x.part[i] /= y;
  return x;
}
UPER_ATTR inline Eight Square(Eight x) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) x.part[i] *= x.part[i];
  return x;
}

// A lane has all bits set if it is among the first `count` of eight. `part` counts from 0.
UPER_ATTR inline Integers IsFirst(int part, int count) {
  constexpr std::int64_t kIndices[] = {0, 1, 2, 3, 4, 5, 6, 7};
  Integers index;
  std::memcpy(&index, kIndices + part * kLanes, sizeof(index));
  return index < count;
}

// Keeps the first `count` entries. The others become 0, even if they are NaN.
UPER_ATTR inline Eight First(Eight x, int count) {
  if (count == 8) return x;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    x.part[i] = reinterpret_cast<Vec>(reinterpret_cast<Integers>(x.part[i]) & IsFirst(i, count));
  }
  return x;
}

UPER_ATTR inline Vec LoadPart(const double* from) {
  Vec result;
  std::memcpy(&result, from, sizeof(result));
  return result;
}
// GCC 12 makes several instructions of __builtin_convertvector where one is enough.
UPER_ATTR inline Vec LoadPart(const float* from) {
#if UPER_LANES == 8
  return _mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(from));
#elif UPER_LANES == 4
  return _mm256_cvtps_pd(_mm_loadu_ps(from));
#elif defined(__x86_64__)
  return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadu_si64(from)));
#else
  float __attribute__((vector_size(4 * kLanes))) values;
  std::memcpy(&values, from, sizeof(values));
  return __builtin_convertvector(values, Vec);
#endif
}

template <typename Real>
UPER_ATTR inline Eight LoadEight(const Real* from) {
  Eight result;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) result.part[i] = LoadPart(from + i * kLanes);
  return result;
}

// LoadFirst() loads the first `count` < 8 entries and touches no other memory. The others are 0.
#if UPER_LANES == 2
template <typename Real>
UPER_ATTR inline Eight LoadFirst(const Real* from, int count) {
  Eight result = {};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i, from += 2) {
    if (2 * i + 1 < count) {
      result.part[i] = LoadPart(from);
    } else if (2 * i < count) {
      Real last;
      std::memcpy(&last, from, sizeof(last));
      result.part[i] = Vec{static_cast<double>(last), 0};
    }
  }
  return result;
}
#else
UPER_ATTR inline Eight LoadFirst(const float* from, int count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i is_first = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
  const __m256 values = _mm256_maskload_ps(from, is_first);
  float entries[8];
  std::memcpy(entries, &values, sizeof(entries));
  return LoadEight(entries);
}
UPER_ATTR inline Eight LoadFirst(const double* from, int count) {
#if UPER_LANES == 8
  return {_mm512_maskz_loadu_pd(static_cast<__mmask8>((1 << count) - 1), from)};
#else
  return {_mm256_maskload_pd(from, reinterpret_cast<__m256i>(IsFirst(0, count))),
          _mm256_maskload_pd(from + 4, reinterpret_cast<__m256i>(IsFirst(1, count)))};
#endif
}
#endif

template <typename Real>
UPER_ATTR inline Eight Load(const Real* from, int count) {
  return count == 8 ? LoadEight(from) : LoadFirst(from, count);
}

UPER_ATTR inline void Store(const Eight& values, int count, double* to) {
  if (count == 8) {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) std::memcpy(to + i * kLanes, &values.part[i], sizeof(Vec));
  } else {
    double entries[8];
    std::memcpy(entries, &values, sizeof(entries));
    for (int i = 0; i < count; ++i) to[i] = entries[i];
  }
}

// ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)), two neighbors at a time.
UPER_ATTR inline double Sum(const Eight& sums) {
  using Pair = double __attribute__((vector_size(16)));
  Pair s[4];
  std::memcpy(s, &sums, sizeof(s));
  const Pair sum = (s[0] + s[2]) + (s[1] + s[3]);
  return sum[0] + sum[1];
}

// Calls body(t, n) for the entries t to t + n - 1 until it has had all `count`. n is 8, in the last
// call less if need be.
template <typename Body>
UPER_ATTR inline void ForEachEight(std::size_t count, const Body& body) {
  const std::size_t left = count % 8;
  for (std::size_t t = 0; t < count - left; t += 8) body(t, 8);
  if (left > 0) body(count - left, static_cast<int>(left));
}

// The sum over `count` terms; term(t, n) returns n of them.
template <typename Term>
UPER_ATTR inline double SumTerms(std::size_t count, const Term& term) {
  Eight sums = {};
  ForEachEight(count, [&](std::size_t t, int n) UPER_ATTR { sums = sums + First(term(t, n), n); });
  return Sum(sums);
}

template <typename Real>
UPER_ATTR inline double Mean(const Real* row, std::size_t count) {
  const auto term = [&](std::size_t t, int n) UPER_ATTR { return Load(row + t, n); };
  return SumTerms(count, term) / static_cast<double>(count);
}

// theta, and the mean over its members in two parts: Base() + columns.
//
// Base() is 0 for floats, because sums of equal floats are exact in double. For doubles it is
// member 0: only distances from it are added. Equal members have none, and a common offset costs no
// digits.
template <typename Real>
struct Ensemble {
  static constexpr bool kHasBase = std::is_same_v<Real, double>;

  UPER_ATTR Ensemble(const Real* its_theta, EnsembleShape its_shape, double* its_columns)
      : theta(its_theta), shape(its_shape), columns(its_columns) {
    if constexpr (kHasBase) std::memcpy(&origin, theta, sizeof(origin));
  }

  // theta - Base() of member k.
  UPER_ATTR Eight Row(std::size_t k, std::size_t t, int n) const {
    const Eight row = Load(theta + k * shape.quantiles + t, n);
    return kHasBase ? row - Load(theta + t, n) : row;
  }
  // theta - mean over members of member k.
  UPER_ATTR Eight Deviation(std::size_t k, std::size_t t, int n) const {
    return Row(k, t, n) - Load(columns + t, n);
  }
  // The mean over members, as a distance from the origin.
  UPER_ATTR Eight MeanRow(std::size_t t, int n) const {
    const Eight column = Load(columns + t, n);
    return kHasBase ? (Load(theta + t, n) - origin) + column : column;
  }

  const Real* theta;
  EnsembleShape shape;
  double* columns;
  double origin = 0;  // the first entry of Base()
};

template <typename Real>
UPER_ATTR inline void ComputeColumns(const Ensemble<Real>& ensemble) {
  const double members = static_cast<double>(ensemble.shape.members);
  ForEachEight(ensemble.shape.quantiles, [&](std::size_t t, int n) UPER_ATTR {
    Eight sum = {};
    for (std::size_t k = 0; k < ensemble.shape.members; ++k) sum = sum + ensemble.Row(k, t, n);
    Store(sum / members, n, ensemble.columns + t);
  });
}

// Computes `columns`, mean and aleatoric.
template <typename Real>
UPER_ATTR inline Uncertainty DecomposeMean(const Ensemble<Real>& ensemble) {
  ComputeColumns(ensemble);
  const std::size_t count = ensemble.shape.quantiles;
  const double quantiles = static_cast<double>(count);
  const double first = ensemble.columns[0];  // equal quantiles are all at distance 0 from it
  const auto distance = [&](std::size_t t, int n)
                            UPER_ATTR { return ensemble.MeanRow(t, n) - first; };
  const double mean = SumTerms(count, distance) / quantiles;
  const double squares = SumTerms(
      count, [&](std::size_t t, int n) UPER_ATTR { return Square(distance(t, n) - mean); });
  return {.mean = ensemble.origin + (first + mean), .aleatoric = squares / quantiles};
}

// Sums over members.
struct TargetSums {
  double gaps = 0;  // gap of member k: mean T_k - mean theta_k
  double gap_squares = 0;
  // Sums over quantiles, too.
  double disagreement = 0;  // of squared deviations from the mean over members
  double shapes = 0;        // the same after each member's mean deviation is taken off
  double variation = 0;     // of squared distances of a target from the mean of its member
};

// Adds what depends on the quantiles of member k. `target` is its row of targets.
template <typename Real>
UPER_ATTR inline void AddMember(const Ensemble<Real>& ensemble, std::size_t k, const Real* target,
                                double target_mean, TargetSums& sums) {
  const std::size_t count = ensemble.shape.quantiles;
  const auto term = [&](std::size_t t, int n) UPER_ATTR { return ensemble.Deviation(k, t, n); };
  const double mean = SumTerms(count, term) / static_cast<double>(count);
  Eight disagreement = {};
  Eight shapes = {};
  Eight variation = {};
  ForEachEight(count, [&](std::size_t t, int n) UPER_ATTR {
    const Eight deviation = ensemble.Deviation(k, t, n);
    disagreement = disagreement + First(Square(deviation), n);
    shapes = shapes + First(Square(deviation - mean), n);
    variation = variation + First(Square(Load(target + t, n) - target_mean), n);
  });
  sums.disagreement += Sum(disagreement);
  sums.shapes += Sum(shapes);
  sums.variation += Sum(variation);
}

// Completes what DecomposeMean() has computed.
UPER_ATTR inline Uncertainty WithSums(Uncertainty result, const TargetSums& sums,
                                      EnsembleShape shape, double discount) {
  const double members = static_cast<double>(shape.members);
  const double count = static_cast<double>(shape.members * shape.quantiles);
  const double mean_gap = sums.gaps / members;
  result.epistemic = sums.disagreement / count;
  result.total = result.epistemic + result.aleatoric;
  result.target_distance_sq = mean_gap * mean_gap;
  result.epistemic_delta = discount * discount * (sums.variation / count) +
                           sums.gap_squares / members + sums.shapes / count;
  result.total_delta = result.epistemic_delta + result.aleatoric;
  return result;
}

template <typename Real>
UPER_TARGET void QuantileMeans(const Real* values, EnsembleShape shape, double* means) {
  for (std::size_t k = 0; k < shape.members; ++k)
    means[k] = Mean(values + k * shape.quantiles, shape.quantiles);
}

template <typename Real>
UPER_TARGET Uncertainty Decompose(const Real* theta, EnsembleShape shape, double* columns) {
  const Ensemble<Real> ensemble(theta, shape, columns);
  Uncertainty result = DecomposeMean(ensemble);
  double squares = 0;
  for (std::size_t k = 0; k < shape.members; ++k) {
    squares += SumTerms(shape.quantiles, [&](std::size_t t, int n) UPER_ATTR {
      return Square(ensemble.Deviation(k, t, n));
    });
  }
  result.epistemic = squares / static_cast<double>(shape.members * shape.quantiles);
  result.total = result.epistemic + result.aleatoric;
  return result;
}

template <typename Real>
UPER_TARGET Uncertainty DecomposeTarget(const Real* theta, const Real* target_theta,
                                        EnsembleShape shape, double reward, double discount,
                                        const double* theta_means, const double* target_means,
                                        double* columns) {
  const Ensemble<Real> ensemble(theta, shape, columns);
  const Uncertainty result = DecomposeMean(ensemble);
  const std::size_t quantiles = shape.quantiles;
  TargetSums sums;
  for (std::size_t k = 0; k < shape.members; ++k) {
    const Real* own = theta + k * quantiles;
    const Real* next = target_theta + k * quantiles;
    const double own_mean = theta_means != nullptr ? theta_means[k] : Mean(own, quantiles);
    const double next_mean = target_means != nullptr ? target_means[k] : Mean(next, quantiles);
    const double gap = (reward + discount * next_mean) - own_mean;
    sums.gaps += gap;
    sums.gap_squares += gap * gap;
    AddMember(ensemble, k, next, next_mean, sums);
  }
  return WithSums(result, sums, shape, discount);
}

template <typename Real>
constexpr EnsembleKernels<Real> kKernels = {UPER_INSTRUCTIONS, QuantileMeans<Real>, Decompose<Real>,
                                            DecomposeTarget<Real>};

#undef UPER_ATTR
#undef UPER_INSTRUCTIONS
#undef UPER_TARGET
#undef UPER_LANES
