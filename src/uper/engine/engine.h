#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uper/core/importance_weights.h"
#include "uper/core/priority.h"
#include "uper/engine/transition_store.h"

namespace uper {

// How far the caller may continue while updates are pending. Each level includes the ones before.
enum class Lookahead {
  kNone,     // not at all: the updates of a round end before the next round begins
  kUpdates,  // the updates of a round may run while the next round is played
  kActors,   // actors may also decide and begin the next round before this one is stored
};

// An actor's stacked observation: the current one or, with `next`, the one after that frame is
// stored.
struct ActorView {
  std::size_t actor = 0;
  std::optional<NextFrame> next;
};

struct EngineSpec {
  int actors = 1;
  bool overlap = false;  // the caller plays while updates are made
  WeightNormalization normalization = WeightNormalization::kBatchMax;
  PriorityRule rule = PriorityRule::kUniform;  // kUniform: priorities do not change
  PriorityLimits limits;
};

// The learner and its replay memory on one device. Results are as if each command had ended before
// the next one began. An engine may delay commands, overlap them or combine them. Any command may
// pass reports of updates to the sink, in order. Not thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual Lookahead lookahead() const = 0;
  // Reserves memory for frames [first, first + count), the next to be stored. Environments must
  // write them there. With kActors, decisions may use them before they are stored. The memory of
  // the last two calls is valid. Empty without kActors.
  virtual std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) = 0;

  // The values of all actions for each view, in two steps; [view, action], valid until the next
  // command. REQUIRES: every frame of a view is stored, or it is `next` and in reserved memory.
  virtual void BeginDecisions(std::span<const ActorView> views) = 0;
  virtual std::span<const float> AwaitActionValues() = 0;

  // Makes updates in order: draws the batch, learns from it, sets its priorities. Throws
  // Error(kNumeric), naming the transitions, if an update was not finite; a later command may throw
  // it instead.
  virtual void Learn(int updates, double importance_exponent) = 0;
  // Copies the online network to the target network.
  virtual void CopyTarget() = 0;
  // Whether updates are pending. A hint: the caller may do other work first.
  virtual bool HasPendingUpdates() = 0;
  // Waits until all updates are made and reported.
  virtual void AwaitUpdates() = 0;

  // SyncToHost(): call it before the store is saved; the store then has all priorities.
  // SyncFromHost(): call it after the store was restored; the device then has all priorities.
  virtual void SyncToHost() = 0;
  virtual void SyncFromHost() = 0;
};

}  // namespace uper
