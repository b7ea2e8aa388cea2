#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uper/base/random.h"
#include "uper/envs/environment.h"
#include "uper/envs/grid/grid_map.h"
#include "uper/envs/grid/noisy_grid.h"

namespace uper {

// The noisy gridworld as an environment: uint8 observations [rows, columns, 1], 1 where the agent
// is and 0 elsewhere. A step that ends in a noisy cell is noisy.
class GridEnvironment final : public Environment {
 public:
  GridEnvironment(const std::string& name, const GridMap& map, const NoisyGridOptions& options,
                  const RandomStream& stream);

  static EnvironmentSpec Describe(const std::string& name, const GridMap& map);

  const EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  // Constant after construction.
  EnvironmentSpec spec_;
  int timeout_steps_;

  NoisyGrid grid_;
  RandomStream stream_;
  // The moves of this episode. They are deterministic, so they are the saved state: replaying them
  // restores the grid.
  std::vector<std::uint8_t> actions_;
};

}  // namespace uper
