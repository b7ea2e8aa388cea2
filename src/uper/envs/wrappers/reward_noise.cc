#include "uper/envs/wrappers/reward_noise.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace uper {
namespace {

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, odd

// SplitMix64's finalizer: every input bit influences every output bit.
std::uint64_t Finalize(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t AddWord(std::uint64_t hash, std::uint64_t word) {
  return std::rotl(hash ^ word, 29) * kMultiplier;
}

}  // namespace

double ObservationHash(std::span<const std::byte> observation) {
  std::uint64_t hash = observation.size() * kMultiplier;
  std::uint64_t word;
  for (; observation.size() >= sizeof(word); observation = observation.subspan(sizeof(word))) {
    std::memcpy(&word, observation.data(), sizeof(word));
    hash = AddWord(hash, word);
  }
  word = 0;
  if (!observation.empty()) std::memcpy(&word, observation.data(), observation.size());
  return static_cast<double>(Finalize(AddWord(hash, word)) >> 11) * 0x1p-53;
}

RewardNoise::RewardNoise(std::unique_ptr<Environment> inner, double sd, double share,
                         const RandomStream& stream)
    : EnvironmentWrapper(std::move(inner)), sd_(sd), share_(share), stream_(stream) {}

void RewardNoise::DoReset(std::span<std::byte> observation) {
  EnvironmentWrapper::DoReset(observation);
  in_noisy_state_ = IsNoisy(observation);
}

TimeStep RewardNoise::DoStep(int action, std::span<std::byte> observation) {
  TimeStep step = EnvironmentWrapper::DoStep(action, observation);
  if (in_noisy_state_) {
    step.reward += sd_ * stream_.Normal();
    step.noisy = true;
  }
  in_noisy_state_ = IsNoisy(observation);
  return step;
}

bool RewardNoise::IsNoisy(std::span<const std::byte> observation) const {
  return share_ >= 1 || ObservationHash(observation) < share_;
}

void RewardNoise::DoSaveState(ByteWriter& writer) const {
  EnvironmentWrapper::DoSaveState(writer);
  writer.Write(stream_.position());
  writer.Write(in_noisy_state_);
}

void RewardNoise::DoRestoreState(ByteReader& reader) {
  EnvironmentWrapper::DoRestoreState(reader);
  stream_.set_position(reader.Read<std::uint64_t>());
  in_noisy_state_ = reader.Read<bool>();
}

}  // namespace uper
