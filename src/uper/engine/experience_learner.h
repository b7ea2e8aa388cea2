#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "uper/engine/device_replay.h"
#include "uper/engine/transition_store.h"
#include "uper/metrics/metrics_window.h"
#include "uper/metrics/time_breakdown.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper {

// What is seen in an environment: now, or, if that is not stored yet, next.
struct Sight {
  std::size_t environment = 0;
  std::optional<Experience::NextFrame> next;
};

// Learns from an experience and values what the environments see: the seam between batches that the
// host makes and a memory on the GPU. Not thread-safe.
class ExperienceLearner {
 public:
  virtual ~ExperienceLearner() = default;

  // The rows of q [environment, action] of these environments; others may be written, too. Where
  // the values are computed elsewhere `meanwhile` is called while they are; updates that it queues
  // come after them. REQUIRES: everything is stored, or values_ahead().
  virtual void ActionValues(std::span<const Sight> sights, std::span<float> q,
                            const std::function<void()>& meanwhile) = 0;
  // Can it value what is not stored yet? Then new frames belong into ReserveFrames()
  // (DeviceReplay).
  virtual bool values_ahead() const { return false; }
  virtual std::span<std::byte> ReserveFrames(std::uint64_t, std::size_t) { return {}; }

  // Updates, one after another: each draws a batch, learns from it, sets its priorities, and copies
  // the target network if that is due. It may come back before that is done, but everything happens
  // in the order of the calls. Throws Error(kNumeric), naming the transitions, if an update was not
  // finite; that may also come from a later call.
  virtual void Learn(int updates, double importance_exponent) = 0;
  // Does Learn() come back before it is done?
  virtual bool queues() const = 0;
  // Are updates still to be made?
  virtual bool HasPendingUpdates() { return false; }

  // Waits for all updates; then all they found is in the metrics, in their order.
  virtual void Finish() = 0;
  // The same; then the experience has its priorities too, and can be saved.
  virtual void BringHome() = 0;
  // To be called when the experience was restored.
  virtual void Restored() = 0;
};

// What both kinds work on; all of it must outlive them.
struct LearningParts {
  const RunConfig& config;
  Learner& learner;
  Experience& experience;
  MetricsWindow& window;
  TimeBreakdown& times;
  bool overlaps = false;  // environments play while updates are made
};

std::unique_ptr<ExperienceLearner> MakeHostExperienceLearner(const LearningParts& parts);
// The memory must be beside that learner, and the experience know that it draws (MakeExperience).
std::unique_ptr<ExperienceLearner> MakeGpuExperienceLearner(const LearningParts& parts,
                                                            DeviceReplay& memory);

// What one update found.
struct LearnedBatch {
  double loss = 0;
  double gradient_norm = 0;
  std::span<const float> weights;
  std::span<const double> td_error;
  std::span<const Uncertainty> uncertainty;
  std::span<const Priority> priorities;
  std::span<const std::uint8_t> noisy;
};
void AddTo(MetricsWindow& window, const LearnedBatch& batch);

// target = online, if the configuration wants it after this many updates.
void CopyTargetIfDue(const RunConfig& config, Learner& learner);
// After at most so many updates it may be due; at least 1.
std::int64_t UpdatesToNextCopy(const RunConfig& config, Learner& learner);

// Throws Error(kind): the message, and the batch it is about.
[[noreturn]] void ThrowWithBatch(ErrorKind kind, const std::string& message,
                                 std::span<const std::uint64_t> ids);

}  // namespace uper
