#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "uper/base/threads/background_task.h"
#include "uper/checkpoint/checkpoint_store.h"

namespace uper::checkpoint {

// Functions that supply the content of a save; called at a step boundary.
struct CheckpointSource {
  std::function<CheckpointContent()> content;
  std::function<std::map<std::string, RecordStream>()> streams;
};

// The report of a finished save.
struct SaveReport {
  SaveOutcome outcome;
  nlohmann::json info;  // of its content; null if the content was never read
};

// How long saving took and how long it held up training.
struct SaveTimes {
  std::int64_t saves = 0;    // that were written
  double pause_seconds = 0;  // all pauses: copying at step boundaries, waiting for an earlier save
  double longest_pause_seconds = 0;
  double save_pause_seconds = 0;  // the part of them that belongs to saves (not to writing ahead)
  double save_seconds = 0;        // from their copies until they were durable
  double longest_save_seconds = 0;
  std::uint64_t bytes_written = 0;
};

// Writes checkpoints while training goes on. At a step boundary it only copies the data to be
// saved; its own thread compresses and writes. Between two saves it writes complete segments, one
// at a time, so that a save stays small however large the memory is.
//
// A save copies only the incomplete segments. If complete segments are still unwritten, they go
// first and the save begins at a later step boundary. A save that is due while the previous one is
// being written waits for it. Not thread-safe.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointStore store, CheckpointSource source);

  LoadResult Load() { return store_.Load(); }

  // Allocates the memory of a save now, so that the first save need not.
  void Reserve();

  // Requests a save at this step boundary, or at a later one if it cannot begin here.
  void Request();
  bool requested() const { return requested_; }
  // Call at a step boundary: begins due work without waiting. Returns the report of a finished
  // save.
  std::optional<SaveReport> Advance();
  // Completes the running job and a requested save.
  std::optional<SaveReport> Finish();

  // Completes the running job and begins no other.
  void Await() { task_.Wait(); }

  const SaveTimes& times() const { return times_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Job { kNone, kAhead, kSave };

  bool BeginAhead();
  void BeginSave();
  void Begin(Job job, std::function<SaveOutcome()> publish);
  std::optional<SaveReport> TakeFinished();
  void AddPause(Clock::time_point start, bool of_save);

  CheckpointStore store_;
  CheckpointSource source_;
  bool requested_ = false;
  bool ahead_failed_ = false;  // then only saves try again
  int calls_ = 0;              // calls of Advance() since the last look for complete segments
  Job job_ = Job::kNone;       // begun and not taken yet
  Clock::time_point job_start_;
  SaveTimes times_;

  // Only the writer's thread uses these while a job runs.
  PreparedSave save_;
  PreparedAhead ahead_;
  SaveOutcome outcome_;
  double outcome_seconds_ = 0;  // from job_start_

  BackgroundTask task_;  // last: it ends before the members it uses
};

}  // namespace uper::checkpoint
