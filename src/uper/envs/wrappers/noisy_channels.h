#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "uper/base/random.h"
#include "uper/envs/wrappers/environment_wrapper.h"

namespace uper {

// "Noisy TV": appends channels whose every cell is 0 or 1 with probability 1/2, drawn anew for each
// observation. They say nothing about the game. REQUIRES: channels > 0 and 0 and 1 are elements of
// the inner observations' range.
class NoisyChannels final : public EnvironmentWrapper {
 public:
  NoisyChannels(std::unique_ptr<Environment> inner, int channels, const RandomStream& stream);

  const EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  std::span<std::byte> clean() {
    return std::span(clean_).first(inner().spec().observation_bytes());
  }
  // Writes the clean observation with the noise beside it, cell by cell.
  void Merge(std::span<std::byte> observation);

  // Constant after construction.
  EnvironmentSpec spec_;
  std::size_t clean_cell_bytes_;  // of all inner channels of one cell
  int noisy_channels_;

  RandomStream stream_;
  // The inner observation and the merged one, each with room behind it for a whole word.
  std::vector<std::byte> clean_;
  std::vector<std::byte> merged_;
};

}  // namespace uper
