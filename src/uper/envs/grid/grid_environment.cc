#include "uper/envs/grid/grid_environment.h"

#include <algorithm>

#include "uper/base/error.h"

namespace uper {
namespace {

void DrawAgent(int state, std::span<std::byte> observation) {
  std::fill(observation.begin(), observation.end(), std::byte{0});
  observation[static_cast<std::size_t>(state)] = std::byte{1};
}

}  // namespace

GridEnvironment::GridEnvironment(const std::string& name, const GridMap& map,
                                 const NoisyGridOptions& options, const RandomStream& stream)
    : spec_(Describe(name, map)),
      timeout_steps_(options.timeout_steps),
      grid_(map, options),
      stream_(stream) {
  actions_.reserve(static_cast<std::size_t>(timeout_steps_));
}

EnvironmentSpec GridEnvironment::Describe(const std::string& name, const GridMap& map) {
  return {.name = name,
          .actions = NoisyGrid::kActions,
          .height = map.rows(),
          .width = map.columns(),
          .element_max = 1};
}

void GridEnvironment::DoReset(std::span<std::byte> observation) {
  actions_.clear();
  DrawAgent(grid_.Reset(), observation);
}

TimeStep GridEnvironment::DoStep(int action, std::span<std::byte> observation) {
  actions_.push_back(static_cast<std::uint8_t>(action));
  const GridStep step = grid_.Step(action, stream_);
  DrawAgent(step.state, observation);
  return {.reward = step.reward,
          .discount = step.terminated ? 0.0 : 1.0,
          .terminated = step.terminated,
          .truncated = step.truncated,
          .noisy = grid_.cell(step.state) == GridCell::kNoisy};
}

void GridEnvironment::DoSaveState(ByteWriter& writer) const {
  writer.Write(stream_.position());
  writer.WriteBlock(std::as_bytes(std::span(actions_)));
}

void GridEnvironment::DoRestoreState(ByteReader& reader) {
  const auto position = reader.Read<std::uint64_t>();
  const auto actions = reader.ReadBlock();
  grid_.Reset();
  actions_.clear();
  bool ended = false;
  for (const std::byte byte : actions) {
    const auto action = std::to_integer<std::uint8_t>(byte);
    if (ended || action >= NoisyGrid::kActions) {
      throw Error(ErrorKind::kCorrupt, "the saved state of " + spec_.name + " cannot be played");
    }
    const GridStep step = grid_.Step(action, stream_);
    ended = step.terminated || step.truncated;
    actions_.push_back(action);
  }
  stream_.set_position(position);  // after the replay's own draws
}

}  // namespace uper
