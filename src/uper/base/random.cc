#include "uper/base/random.h"

#include <cmath>

#include "uper/base/check.h"

namespace uper {
namespace {

// SplitMix64's finalizer: every input bit reaches every output bit.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t KeyFor(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return Mix(Mix(seed) ^ hash);
}

std::uint32_t Low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t High(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

// Horner evaluation, highest power first.
template <std::size_t N>
double Polynomial(const double (&coefficients)[N], double x) {
  double value = coefficients[0];
  for (std::size_t i = 1; i < N; ++i) value = value * x + coefficients[i];
  return value;
}

}  // namespace

std::array<std::uint32_t, 4> Philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1),
               High(product0) ^ counter[3] ^ key[1], Low(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t index)
    : key_{Low(KeyFor(seed, name)), High(KeyFor(seed, name))}, index_(index) {}

void RandomStream::FillBlock() {
  const std::uint64_t block = position_ / 4;
  block_ = Philox4x32({Low(block), High(block), Low(index_), High(index_)}, key_);
}

std::uint32_t RandomStream::NextUint32() {
  const auto lane = position_ % 4;
  if (lane == 0) FillBlock();
  ++position_;
  return block_[lane];
}

std::uint64_t RandomStream::NextUint64() {
  const std::uint64_t low = NextUint32();
  return low | (std::uint64_t{NextUint32()} << 32);
}

double RandomStream::Uniform() { return static_cast<double>(NextUint64() >> 11) * 0x1p-53; }

std::uint64_t RandomStream::UniformInt(std::uint64_t bound) {
  UPER_CHECK(bound > 0, "the range must not be empty");
  // Lemire's method: the high word of random * bound; the low words below 2^64 mod bound are
  // the ones that would be drawn once too often.
  __extension__ using Uint128 = unsigned __int128;
  const std::uint64_t excess = (0 - bound) % bound;
  while (true) {
    const Uint128 product = static_cast<Uint128>(NextUint64()) * bound;
    if (static_cast<std::uint64_t>(product) >= excess) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

bool RandomStream::Bernoulli(double probability) { return Uniform() < probability; }

double RandomStream::Normal() {
  // The middle of the cell, so that the argument is never 0 or 1.
  return NormalQuantile((static_cast<double>(NextUint64() >> 11) + 0.5) * 0x1p-53);
}

void RandomStream::set_position(std::uint64_t position) {
  position_ = position;
  if (position_ % 4 != 0) FillBlock();
}

double NormalQuantile(double probability) {
  UPER_DCHECK(probability > 0 && probability < 1, "a probability strictly inside (0, 1)");
  static constexpr double kCentralNumerator[] = {2.5090809287301226727e3, 3.3430575583588128105e4,
                                                 6.7265770927008700853e4, 4.5921953931549871457e4,
                                                 1.3731693765509461125e4, 1.9715909503065514427e3,
                                                 1.3314166789178437745e2, 3.3871328727963666080e0};
  static constexpr double kCentralDenominator[] = {5.2264952788528545610e3, 2.8729085735721942674e4,
                                                   3.9307895800092710610e4, 2.1213794301586595867e4,
                                                   5.3941960214247511077e3, 6.8718700749205790830e2,
                                                   4.2313330701600911252e1, 1.0};
  static constexpr double kMiddleNumerator[] = {
      7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
      1.27045825245236838258e0,  3.64784832476320460504e0,  5.76949722146069140550e0,
      4.63033784615654529590e0,  1.42343711074968357734e0};
  static constexpr double kMiddleDenominator[] = {
      1.05075007164441684324e-9, 5.47593808499534494600e-4,
      1.51986665636164571966e-2, 1.48103976427480074590e-1,
      6.89767334985100004550e-1, 1.67638483018380384940e0,
      2.05319162663775882187e0,  1.0};
  static constexpr double kFarNumerator[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                             1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                             2.96560571828504891230e-1, 1.78482653991729133580e0,
                                             5.46378491116411436990e0,  6.65790464350110377720e0};
  static constexpr double kFarDenominator[] = {
      2.04426310338993978564e-15, 1.42151175831644588870e-7,
      1.84631831751005468180e-5,  7.86869131145613259100e-4,
      1.48753612908506148525e-2,  1.36929880922735805310e-1,
      5.99832206555887937690e-1,  1.0};
  const double q = probability - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kCentralNumerator, r) / Polynomial(kCentralDenominator, r);
  }
  const double tail = q < 0 ? probability : 1 - probability;
  const double r = std::sqrt(-std::log(tail));
  const double x =
      r <= 5 ? Polynomial(kMiddleNumerator, r - 1.6) / Polynomial(kMiddleDenominator, r - 1.6)
             : Polynomial(kFarNumerator, r - 5) / Polynomial(kFarDenominator, r - 5);
  return q < 0 ? -x : x;
}

}  // namespace uper
