#include "uper/envs/bandit/bandit_environment.h"

namespace uper {

BanditEnvironment::BanditEnvironment(const std::string& name, const ConalBanditOptions& options,
                                     const RandomStream& stream)
    : bandit_(options), spec_(Describe(name, options)), stream_(stream) {}

EnvironmentSpec BanditEnvironment::Describe(const std::string& name,
                                            const ConalBanditOptions& options) {
  return {.name = name, .actions = ConalBandit(options).arms(), .element_max = 1};
}

void BanditEnvironment::DoReset(std::span<std::byte> observation) { observation[0] = std::byte{1}; }

TimeStep BanditEnvironment::DoStep(int action, std::span<std::byte> observation) {
  observation[0] = std::byte{1};
  return {.reward = bandit_.DrawReward(action, stream_), .discount = 0, .terminated = true};
}

void BanditEnvironment::DoSaveState(ByteWriter& writer) const { writer.Write(stream_.position()); }

void BanditEnvironment::DoRestoreState(ByteReader& reader) {
  stream_.set_position(reader.Read<std::uint64_t>());
}

}  // namespace uper
