#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "uper/train/config/config.h"

namespace uper {

// Computes what is due: evaluations, rows of the log and checkpoints by frames; updates and copies
// of the target network by frames or updates. Not thread-safe.
class Calendar {
 public:
  struct Due {
    bool evaluate = false;
    bool log = false;
    bool save = false;

    bool any() const { return evaluate || log || save; }
  };
  enum class Command { kLearn, kCopyTarget };

  explicit Calendar(const RunConfig& config) : config_(config) {}

  // Evaluation, log and checkpoint are done up to here; -1: not even those before the first frame.
  std::int64_t finished_frames() const { return finished_frames_; }
  void FinishFrames(std::int64_t frames) { finished_frames_ = frames; }
  // Everything that is due at this number of frames and not done yet.
  Due DueAt(std::int64_t frames) const;

  // Adds the updates and target copies that a step makes due. The step raised the frames from
  // `frames_before` to `frames`, and the store now has `stored` transitions.
  void AddStep(std::int64_t frames_before, std::int64_t frames, std::int64_t stored);
  // The due commands in order. There are none at a checkpoint.
  std::span<const Command> commands() const { return commands_; }
  void ClearCommands() { commands_.clear(); }

  // Continues from a checkpoint.
  void Restore(std::int64_t finished_frames, std::int64_t updates);

 private:
  void AddUpdate();

  const RunConfig& config_;
  std::int64_t finished_frames_ = -1;
  std::int64_t updates_ = 0;  // made or due
  std::vector<Command> commands_;
};

}  // namespace uper
