#include "uper/train/loop/trainer.h"

#include <algorithm>

#include "uper/base/error.h"
#include "uper/engine/learner_tensors.h"
#include "uper/metrics/optional_json.h"
#include "uper/train/loop/evaluator.h"

namespace uper {
namespace {

// Training environments have the indices from 0; evaluations have those from here on.
constexpr std::uint64_t kFirstEvaluationIndex = std::uint64_t{1} << 32;
constexpr auto kProgressPeriod = std::chrono::milliseconds(200);

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Share of the stored transitions with injected noise; nothing while none is stored.
std::optional<double> NoisyStoredShare(const TransitionStore& store) {
  const ReplayBuffer& buffer = store.buffer();
  if (buffer.size() == 0) return std::nullopt;
  std::size_t noisy = 0;
  for (std::uint64_t id = buffer.first_id(); id < buffer.next_id(); ++id) {
    noisy += store.IsNoisy(id) ? 1 : 0;
  }
  return static_cast<double>(noisy) / static_cast<double>(buffer.size());
}

}  // namespace

Trainer::Trainer(const RunConfig& config, const TrainerFiles& files, TrainerParts parts,
                 TrainerCallbacks callbacks)
    : config_(config),
      files_(files),
      parts_(std::move(parts)),
      callbacks_(std::move(callbacks)),
      actors_(parts_.actors, parts_.make_environment),
      calendar_(config_),
      loop_(config_, actors_, *parts_.store, *parts_.engine, calendar_, *parts_.record),
      session_start_(Clock::now()),
      last_row_time_(session_start_),
      last_progress_(session_start_),
      writer_(checkpoint::CheckpointStore(files.checkpoints),
              {.content = [this] { return Content(); },
               .streams = [this] { return parts_.store->Streams(); }}) {
  const checkpoint::LoadResult loaded = writer_.Load();
  for (const std::string& note : loaded.notes) callbacks_.warn(note);
  OpenLog(loaded.checkpoint);
  session_first_frame_ = frames();
  last_row_frames_ = frames();
  writer_.Reserve();
}

// With a checkpoint the whole run continues from there, including the log.
void Trainer::OpenLog(const std::optional<checkpoint::LoadedCheckpoint>& checkpoint) {
  const MetricsLogOptions options{.csv = files_.metrics,
                                  .events = files_.events,
                                  .warn = callbacks_.warn,
                                  .wall_clock = UnixSeconds};
  if (!checkpoint) {
    log_ = std::make_unique<MetricsLog>(options);
    return;
  }
  try {
    Restore(*checkpoint);
    log_ = std::make_unique<MetricsLog>(options, checkpoint->document.at("log"));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kCorrupt,
                "the checkpoint's document lacks something: " + std::string(error.what()));
  }
}

bool Trainer::Run(const StopFlag& stop) {
  try {
    const bool complete = TrainUntil(stop);
    FinishSaving();
    return complete && frames() >= config_.frames;
  } catch (...) {
    writer_.Await();  // a save from before the failure is good
    throw;
  }
}

bool Trainer::TrainUntil(const StopFlag& stop) {
  bool complete = FinishFrames(stop);  // work left by an interruption, or the first evaluation
  // A checkpoint is the end of a round, so no actor may have started the next one.
  while (complete && frames() < config_.frames && (!stop || !loop_.MayStop())) {
    loop_.PlayRound(stop, /*must_end=*/writer_.requested());
    complete = FinishFrames(stop);
    AdvanceSaving();
    ReportProgress(nullptr);
  }
  loop_.RunDueUpdates();
  AwaitUpdates();
  return complete;
}

// Evaluation, log and checkpoint, if the frames since the last call made them due. Returns false if
// `stop` came in between. The next call does the rest, also after a resume.
bool Trainer::FinishFrames(const StopFlag& stop) {
  const Calendar::Due due = calendar_.DueAt(frames());
  if (due.any()) AwaitUpdates();
  if (due.evaluate && !Evaluate(stop)) return false;
  if (due.log) Log();
  calendar_.FinishFrames(frames());
  if (due.save) {
    const auto phase = In(&TimeBreakdown::saving);
    writer_.Request();
  }
  return true;
}

void Trainer::AwaitUpdates() {
  const auto phase = In(&TimeBreakdown::learning);
  parts_.engine->AwaitUpdates();
}

bool Trainer::Evaluate(const StopFlag& stop) {
  const auto phase = In(&TimeBreakdown::evaluating);
  ReportProgress(nullptr, /*evaluating=*/true);
  const std::uint64_t index = kFirstEvaluationIndex + static_cast<std::uint64_t>(evaluations_);
  const std::unique_ptr<Environment> environment = parts_.make_environment(index);
  const EvaluationResult result = uper::Evaluate(*parts_.learner, *environment,
                                                 {.frames = config_.evaluation_frames,
                                                  .episodes = config_.evaluation_episodes,
                                                  .epsilon = config_.evaluation_epsilon,
                                                  .seed = static_cast<std::uint64_t>(config_.seed),
                                                  .index = index},
                                                 stop);
  if (stop) return false;  // an incomplete evaluation is discarded
  ++evaluations_;
  MetricsWindow& window = parts_.record->window;
  window.eval_return = result.mean_return();
  window.eval_episodes = static_cast<double>(result.returns.size());
  final_eval_return_ = result.mean_return();
  best_eval_return_ =
      std::max(best_eval_return_.value_or(result.mean_return()), result.mean_return());
  return true;
}

void Trainer::Log() {
  MetricsWindow& window = parts_.record->window;
  MetricsRow row{.frames = frames(), .updates = updates(), .episodes = loop_.episodes()};
  window.FillRow(row);
  row.epsilon = loop_.Epsilon();
  row.beta = loop_.ImportanceExponent();
  row.replay_size = static_cast<double>(parts_.store->buffer().size());
  row.noisy_stored_share = NoisyStoredShare(*parts_.store);
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_row_time_).count();
  if (frames() > last_row_frames_ && seconds > 0) {
    row.frames_per_second = static_cast<double>(frames() - last_row_frames_) / seconds;
  }
  row.wall_seconds = wall_seconds();
  log_->Append(row);
  ReportProgress(&row);
  window = {};
  last_row_time_ = now;
  last_row_frames_ = frames();
}

void Trainer::AdvanceSaving() {
  // Without a checkpoint before the end nothing is written ahead of it.
  if (config_.checkpoint_every_frames >= config_.frames && !writer_.requested()) return;
  const auto phase = In(&TimeBreakdown::saving);
  if (const std::optional<checkpoint::SaveReport> report = writer_.Advance()) ReportSave(*report);
}

// Everything is on the disk afterwards. Throws Error(kResources) if it cannot be saved.
void Trainer::FinishSaving() {
  const auto phase = In(&TimeBreakdown::saving);
  const auto start = Clock::now();
  if (const std::optional<checkpoint::SaveReport> report = writer_.Finish()) ReportSave(*report);
  if (saved_frames_ != frames()) {
    writer_.Request();
    if (const std::optional<checkpoint::SaveReport> report = writer_.Finish()) ReportSave(*report);
  }
  final_save_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  if (saved_frames_ == frames()) return;
  throw Error(ErrorKind::kResources,
              "the run stands at frame " + std::to_string(frames()) +
                  " and could not be saved (see above); " +
                  (saved_frames_ < 0 ? "nothing was saved yet"
                                     : "frame " + std::to_string(saved_frames_) + " is") +
                  "; make room and run the same command to go on from there");
}

void Trainer::ReportSave(const checkpoint::SaveReport& report) {
  const checkpoint::SaveOutcome& outcome = report.outcome;
  if (!outcome.problem.empty()) {
    callbacks_.warn((outcome.saved ? "saved, but " : "not saved, training goes on: ") +
                    outcome.problem);
  }
  if (outcome.saved) saved_frames_ = report.info.at("frames");
}

checkpoint::CheckpointContent Trainer::Content() {
  parts_.engine->SyncToHost();
  checkpoint::CheckpointContent content;
  content.info = {{"frames", frames()}, {"updates", updates()}};
  SaveLearner(*parts_.learner, content);
  actors_.Save(content);
  parts_.store->Save(content);
  content.document["trainer"] = {{"frames", frames()},
                                 {"finished_frames", calendar_.finished_frames()},
                                 {"episodes", loop_.episodes()},
                                 {"evaluations", evaluations_},
                                 {"window", ToJson(parts_.record->window)},
                                 {"final_eval_return", OptionalJson(final_eval_return_)},
                                 {"best_eval_return", OptionalJson(best_eval_return_)},
                                 {"wall_seconds", wall_seconds()}};
  content.document["log"] = log_->SaveState();
  content.sync_outside = [this] { return log_->Sync(); };
  return content;
}

void Trainer::Restore(const checkpoint::LoadedCheckpoint& checkpoint) {
  const nlohmann::json& json = checkpoint.document.at("trainer");
  RestoreLearner(checkpoint, *parts_.learner);
  actors_.Restore(checkpoint);
  parts_.store->Restore(checkpoint);
  parts_.engine->SyncFromHost();
  loop_.Restore(json.at("frames"), json.at("episodes"));
  calendar_.Restore(json.at("finished_frames"), updates());
  evaluations_ = json.at("evaluations");
  parts_.record->window = MetricsWindowFrom(json.at("window"));
  final_eval_return_ = OptionalFrom(json.at("final_eval_return"));
  best_eval_return_ = OptionalFrom(json.at("best_eval_return"));
  former_wall_seconds_ = json.at("wall_seconds");
  saved_frames_ = frames();
}

void Trainer::ReportProgress(const MetricsRow* row, bool evaluating) {
  const auto now = Clock::now();
  const bool event = row != nullptr || evaluating;
  if (!callbacks_.progress || (!event && now - last_progress_ < kProgressPeriod)) return;
  last_progress_ = now;
  const double seconds = SessionSeconds();
  callbacks_.progress(
      {.frames = frames(),
       .total_frames = config_.frames,
       .frames_per_second =
           seconds > 0 ? static_cast<double>(frames() - session_first_frame_) / seconds : 0,
       .row = row,
       .evaluating = evaluating});
}

double Trainer::SessionSeconds() const {
  return std::chrono::duration<double>(Clock::now() - session_start_).count();
}

}  // namespace uper
