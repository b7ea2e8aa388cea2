#include "uper/train/loop/trainer.h"

#include <algorithm>

#include "uper/base/error.h"
#include "uper/engine/learner_tensors.h"
#include "uper/train/loop/evaluator.h"

namespace uper {
namespace {

// Training environments have the indices from 0; evaluations have those from here on.
constexpr std::uint64_t kFirstEvaluationIndex = std::uint64_t{1} << 32;
constexpr auto kProgressPeriod = std::chrono::milliseconds(200);

nlohmann::json OptionalJson(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
std::optional<double> OptionalFrom(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool Overlaps(const RunConfig& config, const TrainerParts& parts) {
  if (config.overlap_updates == Overlap::kAuto) return parts.gpu_memory != nullptr;
  return config.overlap_updates == Overlap::kYes;
}

// Threads that play beside the trainer's own, which plays, too, unless it learns meanwhile.
int WorkersOf(const RunConfig& config, const TrainerParts& parts) {
  const int threads = std::clamp(parts.environment_threads, 1, config.environments);
  const bool learns_beside = Overlaps(config, parts) && parts.gpu_memory == nullptr;
  return learns_beside ? threads : threads - 1;
}

// Share of the stored transitions that noise on purpose touched; nothing while none is stored.
std::optional<double> NoisyStoredShare(const Experience& experience) {
  const ReplayBuffer& buffer = experience.buffer();
  if (buffer.size() == 0) return std::nullopt;
  std::size_t noisy = 0;
  for (std::uint64_t id = buffer.first_id(); id < buffer.next_id(); ++id) {
    noisy += experience.IsNoisy(id) ? 1 : 0;
  }
  return static_cast<double>(noisy) / static_cast<double>(buffer.size());
}

}  // namespace

Trainer::Trainer(const RunConfig& config, const RunFolder& folder, TrainerParts parts,
                 TrainerCallbacks callbacks)
    : config_(config),
      folder_(folder),
      parts_(std::move(parts)),
      callbacks_(std::move(callbacks)),
      epsilon_{.from = config.exploration.epsilon_from,
               .to = config.exploration.epsilon_to,
               .start = static_cast<double>(config.exploration.start_frames),
               .end = static_cast<double>(config.exploration.end_frames)},
      importance_exponent_{
          .from = config.replay.importance_exponent_from,
          .to = config.replay.importance_exponent_to,
          .start = static_cast<double>(config.replay.importance_exponent_start_transitions),
          .end = static_cast<double>(config.replay.importance_exponent_end_transitions)},
      actors_({.environments = config.environments,
               .workers = WorkersOf(config, parts_),
               .free_cores = config.environments > 1 && parts_.gpu_memory != nullptr,
               .seed = static_cast<std::uint64_t>(config.seed)},
              parts_.make_environment),
      overlaps_(Overlaps(config, parts_)),
      session_start_(Clock::now()),
      last_row_time_(session_start_),
      last_progress_(session_start_),
      writer_(CheckpointStore(folder.checkpoints()),
              {.content = [this] { return Content(); },
               .streams = [this] { return parts_.experience->Streams(); }}) {
  const LearningParts learning{.config = config_,
                               .learner = *parts_.learner,
                               .experience = *parts_.experience,
                               .window = window_,
                               .times = times_,
                               .overlaps = overlaps_};
  learning_ = parts_.gpu_memory ? MakeGpuExperienceLearner(learning, *parts_.gpu_memory)
                                : MakeHostExperienceLearner(learning);
  // Without workers those who are ahead would only wait.
  runs_ahead_ =
      overlaps_ && learning_->values_ahead() && (config.environments == 1 || actors_.workers() > 0);
  const LoadResult loaded = writer_.Load();
  for (const std::string& note : loaded.notes) callbacks_.warn(note);
  const MetricsLogOptions logs{.csv = folder.metrics(),
                               .events = folder.events(),
                               .warn = callbacks_.warn,
                               .wall_clock = UnixSeconds};
  if (loaded.checkpoint) {
    try {
      Restore(*loaded.checkpoint);
      log_ = std::make_unique<MetricsLog>(logs, loaded.checkpoint->document.at("log"));
    } catch (const nlohmann::json::exception& error) {
      throw Error(ErrorKind::kCorrupt,
                  "the checkpoint's document lacks something: " + std::string(error.what()));
    }
  } else {
    log_ = std::make_unique<MetricsLog>(logs);
  }
  session_first_frame_ = frames_;
  last_row_frames_ = frames_;
  writer_.Reserve();
}

bool Trainer::Run(const StopFlag& stop) {
  try {
    const bool complete = TrainUntil(stop);
    FinishSaving();
    return complete && frames_ >= config_.frames;
  } catch (...) {
    writer_.Await();  // a save from before the failure is good
    throw;
  }
}

bool Trainer::TrainUntil(const StopFlag& stop) {
  bool complete = FinishFrame(stop);  // what an interruption left undone, or the first evaluation
  // What is saved is the end of a round, so that nobody may be ahead of it.
  while (complete && frames_ < config_.frames && (!stop || actors_.AnyHasBegun())) {
    PlayRound(stop);
    EndRound();
    if (!MayOverlap()) RunUpdates();
    complete = FinishFrame(stop);
    AdvanceSaving();
    ReportProgress(nullptr);
  }
  RunUpdates();
  learning_->Finish();
  return complete;
}

Trainer::Due Trainer::DueAt(std::int64_t frames) const {
  const std::int64_t before = finished_frames_;
  if (before == frames) return {};
  const bool last = frames >= config_.frames;
  if (before < 0) {
    const bool evaluate = config_.evaluate_every_frames > 0;
    return {.evaluate = evaluate, .log = evaluate};
  }
  const auto due = [&](std::int64_t period) {
    return period > 0 && (last || Crossed(before, frames, period));
  };
  const bool evaluate = due(config_.evaluate_every_frames);
  return {.evaluate = evaluate,
          .log = evaluate || due(config_.log_every_frames),  // every evaluation has its row
          .save = due(config_.checkpoint_every_frames)};
}

// Evaluation, log and checkpoint, if the frames since the last call made them due. False if `stop`
// came in between: what is left is done by the next call, also after a resume.
bool Trainer::FinishFrame(const StopFlag& stop) {
  const Due due = DueNow();
  if (due.any()) learning_->Finish();
  if (due.evaluate && !EvaluateNow(stop)) return false;
  if (due.log) Log();
  finished_frames_ = frames_;
  const Stopwatch watch(times_.saving);
  if (due.save) writer_.Request();
  return true;
}

bool Trainer::EvaluateNow(const StopFlag& stop) {
  const Stopwatch watch(times_.evaluating);
  ReportProgress(nullptr, /*evaluating=*/true);
  const std::uint64_t index = kFirstEvaluationIndex + static_cast<std::uint64_t>(evaluations_);
  const std::unique_ptr<Environment> environment = parts_.make_environment(index);
  const EvaluationResult result = Evaluate(*parts_.learner, *environment,
                                           {.frames = config_.evaluation_frames,
                                            .episodes = config_.evaluation_episodes,
                                            .epsilon = config_.evaluation_epsilon,
                                            .seed = static_cast<std::uint64_t>(config_.seed),
                                            .index = index},
                                           stop);
  if (stop) return false;  // half an evaluation counts for nothing
  ++evaluations_;
  window_.eval_return = result.mean_return();
  window_.eval_episodes = static_cast<double>(result.returns.size());
  final_eval_return_ = result.mean_return();
  best_eval_return_ =
      std::max(best_eval_return_.value_or(result.mean_return()), result.mean_return());
  return true;
}

void Trainer::Log() {
  MetricsRow row{.frames = frames_, .updates = updates(), .episodes = episodes_};
  window_.FillRow(row);
  row.epsilon = epsilon_.At(static_cast<double>(frames_));
  row.beta = ImportanceExponent();
  row.replay_size = static_cast<double>(parts_.experience->buffer().size());
  row.noisy_stored_share = NoisyStoredShare(*parts_.experience);
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_row_time_).count();
  if (frames_ > last_row_frames_ && seconds > 0) {
    row.frames_per_second = static_cast<double>(frames_ - last_row_frames_) / seconds;
  }
  row.wall_seconds = wall_seconds();
  log_->Append(row);
  ReportProgress(&row);
  window_ = {};
  last_row_time_ = now;
  last_row_frames_ = frames_;
}

void Trainer::AdvanceSaving() {
  // Without a checkpoint before the end nothing is written ahead of it.
  if (config_.checkpoint_every_frames >= config_.frames && !writer_.requested()) return;
  const Stopwatch watch(times_.saving);
  if (const std::optional<SaveReport> report = writer_.Advance()) ReportSave(*report);
}

// Everything is on the disk afterwards. Throws Error(kResources) if the disk does not let it.
void Trainer::FinishSaving() {
  const Stopwatch watch(times_.saving);
  const auto start = Clock::now();
  if (const std::optional<SaveReport> report = writer_.Finish()) ReportSave(*report);
  if (saved_frames_ != frames_) {
    writer_.Request();
    if (const std::optional<SaveReport> report = writer_.Finish()) ReportSave(*report);
  }
  final_save_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  if (saved_frames_ == frames_) return;
  throw Error(ErrorKind::kResources,
              "the run stands at frame " + std::to_string(frames_) +
                  " and could not be saved (see above); " +
                  (saved_frames_ < 0 ? "nothing was saved yet"
                                     : "frame " + std::to_string(saved_frames_) + " is") +
                  "; make room and run the same command to go on from there");
}

void Trainer::ReportSave(const SaveReport& report) {
  const SaveOutcome& outcome = report.outcome;
  if (!outcome.problem.empty()) {
    callbacks_.warn((outcome.saved ? "saved, but " : "not saved, training goes on: ") +
                    outcome.problem);
  }
  if (outcome.saved) saved_frames_ = report.info.at("frames");
}

CheckpointContent Trainer::Content() {
  learning_->BringHome();
  CheckpointContent content;
  content.info = {{"frames", frames_}, {"updates", updates()}};
  SaveLearner(*parts_.learner, content);
  actors_.Save(content);
  parts_.experience->Save(content);
  content.document["trainer"] = {{"frames", frames_},
                                 {"finished_frames", finished_frames_},
                                 {"episodes", episodes_},
                                 {"evaluations", evaluations_},
                                 {"window", ToJson(window_)},
                                 {"final_eval_return", OptionalJson(final_eval_return_)},
                                 {"best_eval_return", OptionalJson(best_eval_return_)},
                                 {"wall_seconds", wall_seconds()}};
  content.document["log"] = log_->SaveState();
  content.sync_outside = [this] { return log_->Sync(); };
  return content;
}

void Trainer::Restore(const LoadedCheckpoint& checkpoint) {
  const nlohmann::json& json = checkpoint.document.at("trainer");
  RestoreLearner(checkpoint, *parts_.learner);
  actors_.Restore(checkpoint);
  parts_.experience->Restore(checkpoint);
  learning_->Restored();
  frames_ = json.at("frames");
  finished_frames_ = json.at("finished_frames");
  episodes_ = json.at("episodes");
  evaluations_ = json.at("evaluations");
  window_ = MetricsWindowFrom(json.at("window"));
  final_eval_return_ = OptionalFrom(json.at("final_eval_return"));
  best_eval_return_ = OptionalFrom(json.at("best_eval_return"));
  former_wall_seconds_ = json.at("wall_seconds");
  saved_frames_ = frames_;
}

void Trainer::ReportProgress(const MetricsRow* row, bool evaluating) {
  const auto now = Clock::now();
  const bool event = row != nullptr || evaluating;
  if (!callbacks_.progress || (!event && now - last_progress_ < kProgressPeriod)) return;
  last_progress_ = now;
  const double seconds = SessionSeconds();
  callbacks_.progress(
      {.frames = frames_,
       .total_frames = config_.frames,
       .frames_per_second =
           seconds > 0 ? static_cast<double>(frames_ - session_first_frame_) / seconds : 0,
       .row = row,
       .evaluating = evaluating});
}

double Trainer::SessionSeconds() const {
  return std::chrono::duration<double>(Clock::now() - session_start_).count();
}

bool Trainer::Crossed(std::int64_t before, std::int64_t after, std::int64_t period) {
  return after / period > before / period;
}

double Trainer::ImportanceExponent() const {
  return importance_exponent_.At(static_cast<double>(parts_.experience->buffer().next_id()));
}

}  // namespace uper
