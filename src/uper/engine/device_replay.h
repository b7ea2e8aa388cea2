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

// What decides how a replay memory on the GPU draws and prioritises.
struct DeviceReplaySpec {
  std::size_t capacity = 0;  // transitions
  // Of the record of a transition: what names its observations and a RecordTail. Stacked frames:
  // [2, stack_depth] frame slots of 32 bits (FrameStore::kZeroSlot: zeros); else both observations
  // whole.
  std::size_t record_bytes = 0;
  std::size_t observation_bytes = 0;  // of one whole observation
  int stack_depth = 0;                // 0: observations are stored whole
  std::size_t frame_bytes = 0;        // of stacked frames
  std::size_t frame_capacity = 0;

  bool samples_on_device = true;  // by priority, on the GPU; else the caller draws
  double priority_exponent = 0;
  double uniform_mix = 0;
  WeightNormalization normalization = WeightNormalization::kBatchMax;
  double initial_priority = 1;  // ReplayBufferOptions
  double largest_priority_decay = 1;
  PriorityRule rule = PriorityRule::kUniform;  // kUniform: priorities stay as they are
  PriorityLimits limits;

  std::size_t GpuBytes() const;  // what it takes of the GPU's memory
};

// Records of ids in a ring, which live at id % capacity on the host and on the GPU.
struct DeviceRecordSource {
  std::uint64_t first_id = 0;  // the live ones are [first_id, next_id)
  std::uint64_t next_id = 0;
  std::function<void(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out)> read;
};

// One update. Either the random numbers of its draws (DeviceReplaySpec::draws) or the draws
// themselves.
struct DeviceUpdate {
  double importance_exponent = 0;
  std::span<const double> uniforms;    // [batch], each in [0, 1)
  std::span<const std::uint64_t> ids;  // [batch]
  std::span<const float> weights;      // [batch]
};

// What an update did. The spans hold until the next call.
struct DeviceUpdateReport {
  double loss = 0;
  double gradient_norm = 0;
  bool finite = true;     // else the update was not made, nor anything after it
  bool massless = false;  // nothing had mass: the draws were uniform
  std::span<const std::uint64_t> ids;
  std::span<const double> probabilities;  // of the draws, if made on the GPU
  std::span<const float> weights;
  std::span<const std::uint8_t> noisy;  // RecordTail
  std::span<const double> td_error;
  std::span<const Uncertainty> uncertainty;
  std::span<const Priority> priorities;
};

// A replay memory in the GPU's memory beside a learner: frames stored once, records, priorities and
// their sum tree. It follows a memory of the host, which stays the source of everything but the
// priorities. For equal priorities the draws are those of the host's proportional selector, but for
// the last bits of powers, which the GPU rounds in its own way.
//
// An update draws, gathers, learns and sets priorities without the host: updates are queued one
// after another and reported in order. Everything happens in the order of the calls. After an
// update that was not finite nothing may be relied on but its report. Not thread-safe.
class DeviceReplay {
 public:
  virtual ~DeviceReplay() = default;

  virtual const DeviceReplaySpec& spec() const = 0;

  // Takes over what the host has stored or evicted since the last call; new transitions get the
  // largest priority. `frames` is not looked at where observations are stored whole.
  virtual void MirrorHost(const DeviceRecordSource& transitions,
                          const DeviceRecordSource& frames) = 0;

  // Memory for frames [first, first + count), which the host is about to store: whoever writes them
  // there spares MirrorHost() the reading, and acting may name them before they are stored. Only
  // what the last two calls returned holds. REQUIRES: frames are stacked.
  static constexpr int kMaxReservedFrames = 64;
  virtual std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) = 0;

  // Queues updates of the learner, from 1 to kMaxUpdatesPerCall, one after another. At most
  // kMaxUnreportedUpdates may be without a report. Several at once are faster: a batch is drawn
  // while the update before ends.
  static constexpr int kMaxUpdatesPerCall = 8;
  static constexpr std::size_t kMaxUnreportedUpdates = 64;
  virtual void QueueUpdates(std::span<const DeviceUpdate> updates) = 0;
  void QueueUpdate(const DeviceUpdate& update) { QueueUpdates({&update, 1}); }
  // Of the oldest update that was not reported yet, if there is one; `wait`: also if it must be
  // waited for.
  virtual std::optional<DeviceUpdateReport> NextReport(bool wait) = 0;
  // Whether queued updates are still to be made.
  virtual bool HasPendingUpdates() = 0;

  // As Learner::ActionValues, of stacks of frames that are on the GPU or to come: slots [count,
  // stack_depth].
  // In two steps, so that updates can be queued behind the first without being waited for.
  virtual void BeginDecisions(std::span<const std::uint32_t> slots, int count) = 0;
  virtual void AwaitActionValues(int count, std::span<float> q) = 0;
  // Between the two of one decision, behind all that is queued: the next one is to be of one stack,
  // too, and nothing is to be asked of the GPU before. May let it get ready. No result depends on
  // it.
  virtual void PrelaunchDecision() = 0;

  // Raw priorities of all live transitions, oldest first, and the largest one ever given; they
  // wait for all updates.
  virtual void GetPriorities(std::span<float> priorities, double& largest) = 0;
  virtual void SetPriorities(std::span<const float> priorities, double largest) = 0;
};

}  // namespace uper
