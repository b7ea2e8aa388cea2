#include "uper/envs/environment.h"

#include <cstdint>

#include "uper/base/check.h"

namespace uper {
namespace {

// Increase it when the meaning of a saved state changes.
constexpr std::uint32_t kStateVersion = 1;

}  // namespace

void Environment::Reset(std::span<std::byte> observation) {
  CheckBuffer(observation);
  DoReset(observation);
  in_episode_ = true;
}

TimeStep Environment::Step(int action, std::span<std::byte> observation) {
  UPER_CHECK(in_episode_, spec().name + ": Step() needs a Reset() first");
  UPER_CHECK(0 <= action && action < spec().actions,
             spec().name + " has no action " + std::to_string(action));
  CheckBuffer(observation);
  const TimeStep step = DoStep(action, observation);
  in_episode_ = !step.last();
  return step;
}

std::vector<std::byte> Environment::SaveState() const {
  std::vector<std::byte> state;
  ByteWriter writer(state);
  writer.Write(kStateVersion);
  writer.WriteText(spec().name);
  writer.Write(in_episode_);
  DoSaveState(writer);
  return state;
}

void Environment::RestoreState(std::span<const std::byte> state) {
  in_episode_ = false;  // in case anything below throws
  ByteReader reader(state);
  reader.ReadInRange(kStateVersion, kStateVersion);
  const std::string name = reader.ReadText();
  if (name != spec().name) {
    throw Error(ErrorKind::kCorrupt,
                "the saved state is of environment '" + name + "', not of '" + spec().name + "'");
  }
  const bool in_episode = reader.Read<bool>();
  DoRestoreState(reader);
  reader.ExpectEnd();
  in_episode_ = in_episode;
}

void Environment::CheckBuffer(std::span<const std::byte> observation) const {
  UPER_CHECK(observation.size() == spec().observation_bytes(),
             spec().name + " writes observations of " + std::to_string(spec().observation_bytes()) +
                 " bytes, the buffer has " + std::to_string(observation.size()));
}

}  // namespace uper
