#include "uper/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace uper::checkpoint {
namespace {

constexpr int kStepsBetweenLooks = 64;  // for complete segments, between two saves

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointStore store, CheckpointSource source)
    : store_(std::move(store)), source_(std::move(source)) {}

void CheckpointWriter::Reserve() {
  CheckpointContent content = source_.content();
  content.streams.clear();
  store_.Prepare(content, save_);
}

void CheckpointWriter::Request() {
  if (job_ == Job::kSave && task_.busy()) {
    const auto start = Clock::now();
    task_.Wait();
    AddPause(start, /*of_save=*/true);
  }
  requested_ = true;
  ahead_failed_ = false;
}

std::optional<SaveReport> CheckpointWriter::Advance() {
  if (job_ != Job::kNone && task_.busy()) return std::nullopt;
  std::optional<SaveReport> report = TakeFinished();
  if (requested_) {
    if (!BeginAhead()) BeginSave();
  } else if (++calls_ >= kStepsBetweenLooks && !ahead_failed_) {
    calls_ = 0;
    BeginAhead();
  }
  return report;
}

std::optional<SaveReport> CheckpointWriter::Finish() {
  std::optional<SaveReport> last;
  while (job_ != Job::kNone || requested_) {
    task_.Wait();
    if (std::optional<SaveReport> report = TakeFinished()) last = std::move(report);
    if (requested_ && !BeginAhead()) BeginSave();
  }
  return last;
}

bool CheckpointWriter::BeginAhead() {
  const auto start = Clock::now();
  std::optional<PreparedAhead> ahead = store_.PrepareAhead(source_.streams());
  if (!ahead) return false;
  ahead_ = std::move(*ahead);
  AddPause(start, /*of_save=*/false);
  Begin(Job::kAhead, [this] { return store_.PublishAhead(ahead_); });
  return true;
}

void CheckpointWriter::BeginSave() {
  const auto start = Clock::now();
  store_.Prepare(source_.content(), save_);
  AddPause(start, /*of_save=*/true);
  requested_ = false;
  job_start_ = start;
  Begin(Job::kSave, [this] { return store_.Publish(save_); });
}

void CheckpointWriter::Begin(Job job, std::function<SaveOutcome()> publish) {
  job_ = job;
  task_.Start([this, publish = std::move(publish)] {
    try {
      outcome_ = publish();
    } catch (const std::exception& error) {  // such as a lack of memory; training continues
      outcome_ = {.problem = error.what()};
    }
    outcome_seconds_ = SecondsSince(job_start_);
  });
}

// The result of the finished job. A job that wrote ahead has a report only if it failed and a save
// was requested; that save is given up.
std::optional<SaveReport> CheckpointWriter::TakeFinished() {
  const Job job = std::exchange(job_, Job::kNone);
  if (job == Job::kNone) return std::nullopt;
  times_.bytes_written += outcome_.bytes_written;
  if (job == Job::kAhead) {
    ahead_.segment.raw = {};
    if (outcome_.saved) return std::nullopt;
    ahead_failed_ = true;
    if (!std::exchange(requested_, false)) return std::nullopt;
    return SaveReport{.outcome = outcome_, .info = {}};
  }
  save_.streams.clear();  // its records are large and not needed again
  if (outcome_.saved) {
    ++times_.saves;
    times_.save_seconds += outcome_seconds_;
    times_.longest_save_seconds = std::max(times_.longest_save_seconds, outcome_seconds_);
  }
  return SaveReport{.outcome = outcome_, .info = save_.info};
}

void CheckpointWriter::AddPause(Clock::time_point start, bool of_save) {
  const double seconds = SecondsSince(start);
  times_.pause_seconds += seconds;
  if (of_save) times_.save_pause_seconds += seconds;
  times_.longest_pause_seconds = std::max(times_.longest_pause_seconds, seconds);
}

}  // namespace uper::checkpoint
