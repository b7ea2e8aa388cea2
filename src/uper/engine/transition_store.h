#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "uper/checkpoint/checkpoint_content.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/replay/n_step_accumulator.h"
#include "uper/replay/replay_batch.h"
#include "uper/replay/replay_buffer.h"

namespace uper {

// One step of an environment as the memory stores it: the reward already clipped, the discount
// already multiplied with gamma.
struct ExperienceStep {
  int action = 0;
  StepOutcome outcome;
  bool noisy = false;  // noise on purpose touched the step (telemetry)
};

// From the steps of environments to batches of transitions: what the agent sees, n-step
// accumulation (for each environment apart) and replay in one. The seam between games whose
// observations are stored whole and games whose frames are stacked. Not thread-safe.
class Experience {
 public:
  virtual ~Experience() = default;

  // The first observation of an episode of an environment, and every further one with the step that
  // led to it.
  virtual void Start(std::size_t environment, std::span<const std::byte> observation) = 0;
  virtual void Step(std::size_t environment, const ExperienceStep& step,
                    std::span<const std::byte> observation) = 0;

  // What the agent sees now, [environment, observation].
  virtual std::span<const std::byte> current() const = 0;

  // Where frames are stacked: what the agent sees in an environment, [depth], as slots of Frames()
  // (FrameStore::kZeroSlot: zeros). `next`: as it will be when that one is stored.
  struct NextFrame {
    std::uint64_t id = 0;
    bool starts = false;  // an episode
  };
  virtual void Slots(std::size_t environment, const std::optional<NextFrame>& next,
                     std::span<std::uint32_t> slots) const = 0;

  virtual const ReplayBuffer& buffer() const = 0;
  // For a memory that is drawn from elsewhere (SelectorKind::kMirror).
  virtual ReplayBuffer& mutable_buffer() = 0;
  virtual void Sample(const WeightOptions& options, const BatchView& out) = 0;
  virtual UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                                     std::span<const double> priorities) = 0;
  virtual bool IsNoisy(std::uint64_t id) const = 0;

  // What is stored by id. To be read before the next Start or Step. Where frames are not stacked
  // Frames() is empty.
  virtual RecordStream Transitions() const = 0;
  virtual RecordStream Frames() const = 0;
  // Both by their names "transitions" and "frames", if there are frames.
  std::map<std::string, RecordStream> Streams() const {
    std::map<std::string, RecordStream> streams{{"transitions", Transitions()}};
    if (Frames().record_bytes > 0) streams["frames"] = Frames();
    return streams;
  }
  // Everything but the options, into the parts "replay" (tensors, document) and Streams(). What
  // `content` refers to stays as it is until the next Start, Step or SetPriorities.
  virtual void Save(CheckpointContent& content) const = 0;
  virtual void Restore(const LoadedCheckpoint& checkpoint) = 0;
};

}  // namespace uper
