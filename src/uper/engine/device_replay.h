#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "uper/core/importance_weights.h"
#include "uper/core/priority.h"
#include "uper/core/uncertainty.h"
#include "uper/replay/storage/frame_store.h"
#include "uper/replay/transition_record.h"

namespace uper {

// Sizes and rules of a replay memory on the GPU.
struct DeviceReplaySpec {
  std::size_t capacity = 0;  // transitions
  // A record is a transition's two observations and a RecordTail. With stacked frames the
  // observations are frame slots of 32 bits, [2, stack_depth] (FrameStore::kZeroSlot: zeros).
  // Otherwise the record contains both observations.
  std::size_t record_bytes = 0;
  std::size_t observation_bytes = 0;  // per observation
  int stack_depth = 0;                // 0: observations are stored whole
  std::size_t frame_bytes = 0;        // with stacked frames only
  std::size_t frame_capacity = 0;

  bool samples_on_device = true;  // the GPU draws by priority; else the caller draws
  double priority_exponent = 0;
  double uniform_mix = 0;
  WeightNormalization normalization = WeightNormalization::kBatchMax;
  double initial_priority = 1;  // ReplayBufferOptions
  double largest_priority_decay = 1;
  PriorityRule rule = PriorityRule::kUniform;  // kUniform: priorities do not change
  PriorityLimits limits;

  std::size_t DeviceBytes() const;  // GPU memory that the replay memory needs
};

// Reads records of the host's ring. A record with this id is in slot id % capacity, on the host and
// on the GPU.
struct DeviceRecordSource {
  std::uint64_t first_id = 0;  // the ring holds [first_id, next_id)
  std::uint64_t next_id = 0;
  std::function<void(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out)> read;
};

// Inputs of one update: random numbers if DeviceReplaySpec::samples_on_device, else the draws.
struct DeviceUpdate {
  double importance_exponent = 0;
  std::span<const double> uniforms;    // [batch], each in [0, 1)
  std::span<const std::uint64_t> ids;  // [batch]
  std::span<const float> weights;      // [batch]
};

// The outcome of an update. The spans are valid until the next call.
struct DeviceUpdateReport {
  double loss = 0;
  double gradient_norm = 0;
  bool finite = true;             // else this update and all later ones were skipped
  bool uniform_fallback = false;  // no transition had mass: the draws were uniform
  std::span<const std::uint64_t> ids;
  std::span<const float> weights;
  std::span<const std::uint8_t> noisy;  // RecordTail::noisy
  std::span<const double> td_error;
  std::span<const Uncertainty> uncertainty;
  std::span<const Priority> priorities;
};

// A replay memory on the GPU, used by one learner: frames (each stored once), records, priorities
// and their sum tree. It mirrors a replay memory of the host, which owns everything except the
// priorities. With equal priorities the draws equal those of the host's proportional selector. Only
// the last bits of powers may differ, which the GPU rounds in its own way.
//
// An update draws, gathers, learns and sets priorities without the host. Results are as if each
// call had ended before the next began. After an update that was not finite, only its report is
// valid. Not thread-safe.
class DeviceReplay {
 public:
  virtual ~DeviceReplay() = default;

  virtual const DeviceReplaySpec& spec() const = 0;

  // Appends and evicts what the host has stored and evicted since the last call. New transitions
  // get the largest priority. `frames` is ignored if records contain whole observations.
  virtual void MirrorHost(const DeviceRecordSource& transitions,
                          const DeviceRecordSource& frames) = 0;

  // Memory for frames [first, first + count), which the host is about to store. MirrorHost() does
  // not read frames that were written there, and decisions may use them before they are stored.
  // The memory of the last two calls is valid. REQUIRES: frames are stacked.
  static constexpr int kMaxReservedFrames = 64;
  virtual std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) = 0;

  // Queues 1 to kMaxUpdatesPerCall updates of the learner. At most kMaxUnreportedUpdates may be
  // queued and not reported. Several updates per call are faster: each batch is drawn while the
  // previous update ends.
  static constexpr int kMaxUpdatesPerCall = 8;
  static constexpr std::size_t kMaxUnreportedUpdates = 64;
  virtual void QueueUpdates(std::span<const DeviceUpdate> updates) = 0;
  // The report of the oldest unreported update. PollReport() returns nothing if that update has not
  // finished; AwaitReport() waits for it. Both return nothing if every update was reported.
  virtual std::optional<DeviceUpdateReport> PollReport() = 0;
  virtual std::optional<DeviceUpdateReport> AwaitReport() = 0;
  // Whether queued updates have not finished.
  virtual bool HasPendingUpdates() = 0;

  // Like Learner::ActionValues, for stacks of frames that are stored or in reserved memory: slots
  // [count, stack_depth]. AwaitActionValues() does not wait for updates that were queued after
  // BeginDecisions().
  virtual void BeginDecisions(std::span<const std::uint32_t> slots, int count) = 0;
  virtual void AwaitActionValues(int count, std::span<float> q) = 0;
  // Optional hint between BeginDecisions() and AwaitActionValues(): the next call after these will
  // be a decision for one stack. Affects speed only.
  virtual void PrelaunchDecision() = 0;

  // Raw priorities of all stored transitions, oldest first, and the largest priority, which new
  // transitions get. Both calls wait for all updates.
  virtual void GetPriorities(std::span<float> priorities, double& largest) = 0;
  virtual void SetPriorities(std::span<const float> priorities, double largest) = 0;
};

}  // namespace uper
