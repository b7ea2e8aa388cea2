#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uper {

// The Philox4x32-10 block function (Salmon et al. 2011): four random words from a 128-bit counter
// and a 64-bit key, without any state.
std::array<std::uint32_t, 4> Philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// One named stream of random numbers: the words Philox4x32(counter = (position / 4, index), key)
// in order, with the key made from (seed, name). Streams of different seed, name or index are
// independent; nothing but the position changes as numbers are drawn, so a stream is saved and
// restored by one integer. The distributions are our own: the standard library's differ between
// implementations. Not thread-safe.
class RandomStream {
 public:
  // `name` says what the stream is for ("replay draws"); `index` distinguishes equal consumers
  // (environment 0, 1, ...).
  RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t index = 0);

  std::uint32_t NextUint32();
  std::uint64_t NextUint64();

  // Uniform in [0, 1), a multiple of 2^-53. Consumes two words.
  double Uniform();
  // Uniform in {0, ..., bound - 1}, without bias. REQUIRES: bound > 0.
  std::uint64_t UniformInt(std::uint64_t bound);
  // True with the given probability. Consumes two words.
  bool Bernoulli(double probability);
  // Standard normal by inversion, so each number consumes exactly two words.
  double Normal();

  // Number of 32-bit words consumed so far.
  std::uint64_t position() const { return position_; }
  // Continues as if exactly `position` words had been consumed.
  void set_position(std::uint64_t position);

 private:
  void FillBlock();

  // Constant after construction.
  std::array<std::uint32_t, 2> key_;
  std::uint64_t index_;

  std::uint64_t position_ = 0;
  std::array<std::uint32_t, 4> block_{};  // words of block position_ / 4, if position_ % 4 != 0
};

// Quantile function of the standard normal (Wichura's AS 241, relative error about 1e-16).
// REQUIRES: 0 < probability < 1.
double NormalQuantile(double probability);

}  // namespace uper
