#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uper/core/importance_weights.h"
#include "uper/core/priority.h"
#include "uper/engine/transition_store.h"

namespace uper {

// How far the caller may go on while updates are still to be made; each includes the ones before.
enum class Lookahead {
  kNone,     // not at all: the updates of a round end before the next one is played
  kUpdates,  // the updates of a round may be made while the next one is played
  kActors,   // and actors may decide, and play the next round, before this one is stored
};

// The view of an actor: its stacked observation now or, with `next`, as soon as that frame is
// stored.
struct ActorView {
  std::size_t actor = 0;
  std::optional<NextFrame> next;
};

struct EngineSpec {
  int actors = 1;
  bool overlap = false;  // the caller wants to play while updates are made
  WeightNormalization normalization = WeightNormalization::kBatchMax;
  PriorityRule rule = PriorityRule::kUniform;  // kUniform: priorities stay as they are
  PriorityLimits limits;
};

// The learner and its replay memory on one device. Results are as if each command had ended before
// the next was given; an engine may run commands later, beside each other or as one. The reports of
// updates go to the sink, in order, during any command. Not thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual Lookahead lookahead() const = 0;
  // Where environments must write frames [first, first + count), which are stored next: with
  // kActors decisions may name them before. Only what the last two calls returned is valid. Empty
  // without kActors.
  virtual std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) = 0;

  // The values of all actions for each view, in two steps; [view, action], valid until the next
  // command. REQUIRES: every frame of a view is stored, or it is `next` and in reserved memory.
  virtual void BeginDecisions(std::span<const ActorView> views) = 0;
  virtual std::span<const float> AwaitActionValues() = 0;

  // Makes updates in order: draws the batch, learns from it, sets its priorities. Throws
  // Error(kNumeric), naming the transitions, if an update was not finite; a later command may throw
  // it instead.
  virtual void Learn(int updates, double importance_exponent) = 0;
  // The target network becomes a copy of the online network.
  virtual void CopyTarget() = 0;
  // Whether updates are still to be made: a hint for what to do first.
  virtual bool HasPendingUpdates() = 0;
  // Until all updates are made and reported.
  virtual void AwaitUpdates() = 0;

  // Before the store is saved: it then has all priorities. After it was restored: the device has
  // them.
  virtual void SyncToHost() = 0;
  virtual void SyncFromHost() = 0;
};

}  // namespace uper
