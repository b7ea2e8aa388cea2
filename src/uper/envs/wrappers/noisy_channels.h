#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "uper/base/random.h"
#include "uper/envs/wrappers/environment_wrapper.h"

namespace uper {

// "Noisy TV": appends channels whose cells are 0 or 1 with probability 1/2, drawn for each
// observation. They contain no information about the game. REQUIRES: channels > 0; 0 and 1 are
// within the range of the inner observations.
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
  // Writes the clean observation and the noise, cell by cell.
  void Merge(std::span<std::byte> observation);

  // Constant after construction.
  EnvironmentSpec spec_;
  std::size_t clean_cell_bytes_;  // of all inner channels of one cell
  int noisy_channels_;

  RandomStream stream_;
  // The inner observation and the merged one, each padded by one word.
  std::vector<std::byte> clean_;
  std::vector<std::byte> merged_;
};

}  // namespace uper
