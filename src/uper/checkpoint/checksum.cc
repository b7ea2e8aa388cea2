#include "uper/checkpoint/checksum.h"

#include <xxhash.h>

#include <new>

namespace uper::checkpoint {
namespace {

std::string Hex(XXH128_hash_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const XXH64_hash_t word : {hash.high64, hash.low64}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 15];
  }
  return text;
}

}  // namespace

std::string ChecksumOf(std::span<const std::byte> bytes) {
  return Hex(XXH3_128bits(bytes.data(), bytes.size()));
}

struct Checksummer::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Checksummer::Checksummer() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh);
}

Checksummer::~Checksummer() = default;

void Checksummer::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

std::string Checksummer::Value() const { return Hex(XXH3_128bits_digest(state_->xxh)); }

}  // namespace uper::checkpoint
