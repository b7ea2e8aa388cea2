#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uper/base/files/byte_stream.h"

namespace uper {

// The shapes and ranges of an environment; constant for its lifetime.
struct EnvironmentSpec {
  enum class Element { kUint8, kFloat32 };

  std::string name;  // "minatar/breakout"
  int actions = 0;   // actions are 0, ..., actions - 1
  // One observation: row-major [height, width, channels].
  int height = 1;
  int width = 1;
  int channels = 1;
  Element element = Element::kUint8;
  // No element of an observation lies outside [element_min, element_max].
  double element_min = 0;
  double element_max = 255;
  int frame_stack = 1;          // newest observations that an agent stacks
  int max_frames_per_step = 1;  // raw frames
  float input_scale = 1;        // a network sees each element times this

  std::size_t element_bytes() const { return element == Element::kUint8 ? 1 : 4; }
  std::size_t observation_bytes() const {
    return std::size_t{1} * height * width * channels * element_bytes();
  }

  friend bool operator==(const EnvironmentSpec&, const EnvironmentSpec&) = default;
};

// The result of one step, except the observation.
struct TimeStep {
  double reward = 0;        // raw
  double discount = 1;      // 0 where the agent must not bootstrap; without gamma
  bool terminated = false;  // the episode ended by the environment's rules
  bool truncated = false;   // it was cut off: the agent bootstraps
  bool noisy = false;       // injected noise affected this step (telemetry only)
  int frames = 1;           // raw frames played

  bool last() const { return terminated || truncated; }
};

// A picture in color, rgb [height, width, 3].
struct Picture {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> rgb;
};

// A game that an agent can play. It writes observations into the caller's memory, exactly
// spec().observation_bytes(). All randomness comes from streams made at construction, so seed and
// actions decide everything. Not thread-safe; environments share nothing.
class Environment {
 public:
  Environment() = default;
  virtual ~Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  virtual const EnvironmentSpec& spec() const = 0;

  // Starts an episode, also in the middle of one, and writes its first observation.
  void Reset(std::span<std::byte> observation);
  // Plays one action and writes the next observation. REQUIRES: an episode is running (Reset() was
  // called and no step since was last()) and the action is in range.
  TimeStep Step(int action, std::span<std::byte> observation);

  // Draws a picture of the game for people, at the last observation. Returns false if the
  // observations themselves are that picture. REQUIRES: Reset() was called.
  virtual bool Render(Picture& /*picture*/) const { return false; }

  // The state that decides the future, also in mid-episode: an environment with the same options
  // that restores it continues bit for bit.
  std::vector<std::byte> SaveState() const;
  // Throws Error(kCorrupt) if the state is damaged or belongs to another environment. The
  // environment then needs a Reset() or another state.
  void RestoreState(std::span<const std::byte> state);

 protected:
  virtual void DoReset(std::span<std::byte> observation) = 0;
  virtual TimeStep DoStep(int action, std::span<std::byte> observation) = 0;
  virtual void DoSaveState(ByteWriter& writer) const = 0;
  // Reads exactly what DoSaveState wrote and checks that every value is possible.
  virtual void DoRestoreState(ByteReader& reader) = 0;

 private:
  void CheckBuffer(std::span<const std::byte> observation) const;

  bool in_episode_ = false;
};

}  // namespace uper
