#pragma once

// A small game with stacked frames for tests, and the results in a run folder.

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "uper/base/files/byte_stream.h"
#include "uper/base/files/files_for_tests.h"
#include "uper/base/random.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/checkpoint/checksum.h"
#include "uper/envs/environment.h"
#include "uper/train/run/run_folder.h"

namespace uper {

// Frames are drawn at random; rewards follow the first pixel and the action; episodes end, or are
// cut, at random after a few steps.
class StaticEnvironment final : public Environment {
 public:
  // `on_step` is called after every step, if there is one.
  StaticEnvironment(std::uint64_t index, int height, int width, int stack,
                    std::function<void()> on_step = {})
      : spec_{.name = "test/static",
              .actions = 3,
              .height = height,
              .width = width,
              .frame_stack = stack,
              .max_frames_per_step = 4,
              .input_scale = stack > 1 ? 1.0F / 255 : 1},
        stream_(7, "static", index),
        on_step_(std::move(on_step)) {}

  const EnvironmentSpec& spec() const override { return spec_; }

 private:
  void DoReset(std::span<std::byte> observation) override { Draw(observation); }
  TimeStep DoStep(int action, std::span<std::byte> observation) override {
    Draw(observation);
    const double roll = stream_.Uniform();
    if (on_step_) on_step_();
    const bool terminated = roll < 0.1;
    return {.reward = (action == 1 ? 1.0 : -0.25) * static_cast<int>(observation[0]) / 128,
            .discount = terminated || roll > 0.9 ? 0.0 : 1.0,
            .terminated = terminated,
            .truncated = roll > 0.1 && roll < 0.15,
            .noisy = roll > 0.5 && roll < 0.7,
            .frames = 4};
  }
  void Draw(std::span<std::byte> observation) {
    for (std::byte& pixel : observation) pixel = static_cast<std::byte>(stream_.NextUint32());
  }
  void DoSaveState(ByteWriter& writer) const override { writer.Write(stream_.position()); }
  void DoRestoreState(ByteReader& reader) override {
    stream_.set_position(reader.Read<std::uint64_t>());
  }

  const EnvironmentSpec spec_;
  RandomStream stream_;
  std::function<void()> on_step_;
};

// The results of a run that must not depend on threads, overlaps and interruptions.
inline std::map<std::string, std::string> ResultOf(const RunFolder& folder) {
  const checkpoint::LoadResult loaded = checkpoint::LoadNewestCheckpoint(folder.checkpoints());
  EXPECT_TRUE(loaded.checkpoint.has_value());
  std::map<std::string, std::string> result;
  for (const auto& [name, part] : loaded.checkpoint->tensors) {
    for (const auto& [tensor, value] : part.tensors) {
      result[name + "/" + tensor] = checkpoint::ChecksumOf(value.bytes);
    }
  }
  for (const auto& [name, stream] : loaded.checkpoint->manifest.streams) {
    result["stream " + name] = loaded.checkpoint->StreamHash(name);
  }
  result["replay"] = loaded.checkpoint->document.at("replay").dump();
  result["actors"] = loaded.checkpoint->document.at("actors").dump();
  std::istringstream csv(FileContent(folder.metrics()));
  std::vector<std::string> header;
  for (std::string line; std::getline(csv, line);) {
    std::istringstream cells(line);
    std::size_t column = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++column) {
      if (header.size() <= column) header.push_back(cell);
      const std::string& name = header[column];
      if (!name.ends_with("_seconds") && !name.ends_with("_per_second")) {
        result["csv"] += cell + ",";
      }
    }
    result["csv"] += "\n";
  }
  return result;
}

}  // namespace uper
