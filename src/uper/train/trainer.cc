#include "uper/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "uper/base/check.h"
#include "uper/core/importance_weights.h"
#include "uper/core/priority.h"
#include "uper/train/evaluator.h"
#include "uper/train/learner_tensors.h"
#include "uper/train/policy.h"

namespace uper {
namespace {

// The training environment has index 0; evaluations have the indices from here on.
constexpr std::uint64_t kFirstEvaluationIndex = std::uint64_t{1} << 32;
constexpr auto kProgressPeriod = std::chrono::milliseconds(200);

// Adds the time it lives to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

nlohmann::json OptionalJson(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
std::optional<double> OptionalFrom(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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
      store_(folder.checkpoints()),
      environment_(parts_.make_environment(0)),
      exploration_(static_cast<std::uint64_t>(config.seed), "exploration"),
      batch_(config.replay.batch_size, parts_.experience->current().size()),
      priorities_(config.replay.batch_size),
      observation_(environment_->spec().observation_bytes()),
      q_(environment_->spec().actions),
      session_start_(Clock::now()),
      last_row_time_(session_start_),
      last_progress_(session_start_) {
  const LoadResult loaded = store_.Load();
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
}

bool Trainer::Run(const StopFlag& stop) {
  bool complete = FinishFrame(stop);  // what an interruption left undone, or the first evaluation
  while (complete && frames_ < config_.frames && !stop) {
    const std::int64_t before = frames_;
    if (!in_episode_) StartEpisode();
    PlayStep();
    LearnIfDue(before);
    complete = FinishFrame(stop);
    ReportProgress(nullptr);
  }
  if (saved_frames_ != frames_) Save();
  return complete && frames_ >= config_.frames;
}

// Evaluation, log and checkpoint, if the frames since the last call made them due. False if `stop`
// came in between: what is left is done by the next call, also after a resume.
bool Trainer::FinishFrame(const StopFlag& stop) {
  const std::int64_t before = finished_frames_;
  if (before == frames_) return true;
  const bool last = frames_ >= config_.frames;
  const bool first = before < 0;
  const auto due = [&](std::int64_t period) {
    return period > 0 && (last || first || Crossed(before, period));
  };
  if (due(config_.evaluate_every_frames) && !EvaluateNow(stop)) return false;
  if (first ? config_.evaluate_every_frames > 0 : due(config_.log_every_frames)) Log();
  finished_frames_ = frames_;
  if (!first && due(config_.checkpoint_every_frames)) Save();
  return true;
}

void Trainer::StartEpisode() {
  environment_->Reset(observation_);
  parts_.experience->Start(observation_);
  in_episode_ = true;
  episode_return_ = 0;
  episode_frames_ = 0;
}

void Trainer::PlayStep() {
  int action = 0;
  {
    const Stopwatch watch(times_.acting);
    parts_.learner->ActionValues(parts_.experience->current(), 1, q_);
    action = EpsilonGreedy(q_, Epsilon(), exploration_);
  }
  const Stopwatch watch(times_.environment);
  const TimeStep step = environment_->Step(action, observation_);
  const double clip = config_.agent.reward_clip;
  parts_.experience->Step(
      {.action = action,
       .outcome = {.reward = clip > 0 ? std::clamp(step.reward, -clip, clip) : step.reward,
                   .discount = step.discount * config_.agent.discount,
                   .terminated = step.terminated,
                   .truncated = step.truncated},
       .noisy = step.noisy},
      observation_);
  frames_ += step.frames;
  episode_return_ += step.reward;
  episode_frames_ += step.frames;
  if (!step.last()) return;
  in_episode_ = false;
  ++episodes_;
  window_.train_return.Add(episode_return_);
  window_.train_episode_frames.Add(static_cast<double>(episode_frames_));
}

void Trainer::LearnIfDue(std::int64_t frames_before) {
  const auto stored = static_cast<std::int64_t>(parts_.experience->buffer().size());
  if (stored < std::max<std::int64_t>(1, config_.replay.minimum_transitions)) return;
  if (Crossed(frames_before, config_.agent.learn_period_frames)) LearnOnce();
  const std::int64_t period = config_.agent.target_period_frames;
  if (period > 0 && Crossed(frames_before, period)) parts_.learner->CopyTarget();
}

void Trainer::LearnOnce() {
  {
    const Stopwatch watch(times_.sampling);
    parts_.experience->Sample({.importance_exponent = ImportanceExponent(),
                               .normalization = config_.replay.weight_normalization},
                              batch_.view());
  }
  const Stopwatch watch(times_.learning);
  LearnerOutput output;
  try {
    output = parts_.learner->Update({.s_tm1 = batch_.s_tm1,
                                     .s_t = batch_.s_t,
                                     .a_tm1 = batch_.a_tm1,
                                     .r_t = batch_.r_t,
                                     .discount_t = batch_.discount_t,
                                     .weights = batch_.weights,
                                     .masks = batch_.masks});
  } catch (const Error& error) {
    std::string ids;
    for (const std::uint64_t id : batch_.ids) ids += " " + std::to_string(id);
    throw Error(error.kind(), std::string(error.what()) + "; transitions of the batch:" + ids);
  }
  window_.loss.Add(output.loss);
  window_.grad_norm.Add(output.gradient_norm);
  window_.effective_sample_size.Add(EffectiveSampleSize(batch_.weights));
  WritePriorities(output);
  const std::int64_t period = config_.agent.target_period_updates;
  if (period > 0 && parts_.learner->updates() % period == 0) parts_.learner->CopyTarget();
}

void Trainer::WritePriorities(const LearnerOutput& output) {
  const PriorityLimits limits{.aleatoric_floor = config_.agent.aleatoric_floor,
                              .cap = config_.agent.priority_cap};
  for (std::size_t i = 0; i < priorities_.size(); ++i) {
    const Uncertainty& uncertainty = output.uncertainty[i];
    const Priority priority =
        ComputePriority(config_.agent.priority,
                        {.uncertainty = uncertainty, .td_error = output.td_error[i]}, limits);
    priorities_[i] = priority.value;
    if (std::isfinite(priority.value)) {
      window_.priority.Add(priority.value);
      window_.priority_max = std::max(window_.priority_max, priority.value);
    }
    window_.td_error.Add(output.td_error[i]);
    window_.epistemic.Add(uncertainty.epistemic);
    window_.aleatoric.Add(uncertainty.aleatoric);
    window_.target_distance.Add(uncertainty.target_distance_sq);
    window_.floored.Add(priority.floored ? 1 : 0);
    window_.capped.Add(priority.capped ? 1 : 0);
    window_.noisy_draws.Add(parts_.experience->IsNoisy(batch_.ids[i]) ? 1 : 0);
  }
  if (config_.agent.priority == PriorityRule::kUniform) return;
  const UpdateCounts counts = parts_.experience->SetPriorities(batch_.ids, priorities_);
  window_.refused_priorities += static_cast<double>(counts.invalid);
}

bool Trainer::EvaluateNow(const StopFlag& stop) {
  const Stopwatch watch(times_.evaluating);
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
  row.epsilon = Epsilon();
  row.beta = ImportanceExponent();
  row.replay_size = static_cast<double>(parts_.experience->buffer().size());
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

void Trainer::Save() {
  const Stopwatch watch(times_.saving);
  const SaveOutcome outcome = store_.Save(Content());
  if (!outcome.problem.empty()) {
    callbacks_.warn((outcome.saved ? "saved, but " : "not saved, training goes on: ") +
                    outcome.problem);
  }
  if (outcome.saved) saved_frames_ = frames_;
}

CheckpointContent Trainer::Content() {
  CheckpointContent content;
  content.info = {{"frames", frames_}, {"updates", updates()}};
  SaveLearner(*parts_.learner, content);
  environment_state_ = environment_->SaveState();
  content.tensors["environment"] = {{"state", AsTensor<std::byte>(environment_state_)}};
  parts_.experience->Save(content);
  content.document["trainer"] = {{"frames", frames_},
                                 {"finished_frames", finished_frames_},
                                 {"episodes", episodes_},
                                 {"evaluations", evaluations_},
                                 {"in_episode", in_episode_},
                                 {"episode_return", episode_return_},
                                 {"episode_frames", episode_frames_},
                                 {"exploration_position", exploration_.position()},
                                 {"window", ToJson(window_)},
                                 {"final_eval_return", OptionalJson(final_eval_return_)},
                                 {"best_eval_return", OptionalJson(best_eval_return_)},
                                 {"wall_seconds", wall_seconds()}};
  content.document["log"] = log_->SaveState();
  return content;
}

void Trainer::Restore(const LoadedCheckpoint& checkpoint) {
  const nlohmann::json& json = checkpoint.document.at("trainer");
  RestoreLearner(checkpoint, *parts_.learner);
  environment_->RestoreState(TensorValues<std::byte>(checkpoint.Tensors("environment"), "state"));
  parts_.experience->Restore(checkpoint);
  frames_ = json.at("frames");
  finished_frames_ = json.at("finished_frames");
  episodes_ = json.at("episodes");
  evaluations_ = json.at("evaluations");
  in_episode_ = json.at("in_episode");
  episode_return_ = json.at("episode_return");
  episode_frames_ = json.at("episode_frames");
  exploration_.set_position(json.at("exploration_position"));
  window_ = MetricsWindowFrom(json.at("window"));
  final_eval_return_ = OptionalFrom(json.at("final_eval_return"));
  best_eval_return_ = OptionalFrom(json.at("best_eval_return"));
  former_wall_seconds_ = json.at("wall_seconds");
  saved_frames_ = frames_;
}

void Trainer::ReportProgress(const MetricsRow* row) {
  const auto now = Clock::now();
  if (!callbacks_.progress || (row == nullptr && now - last_progress_ < kProgressPeriod)) return;
  last_progress_ = now;
  const double seconds = SessionSeconds();
  callbacks_.progress(
      {.frames = frames_,
       .total_frames = config_.frames,
       .frames_per_second =
           seconds > 0 ? static_cast<double>(frames_ - session_first_frame_) / seconds : 0,
       .row = row});
}

double Trainer::SessionSeconds() const {
  return std::chrono::duration<double>(Clock::now() - session_start_).count();
}

double Trainer::Epsilon() const { return epsilon_.At(static_cast<double>(frames_)); }

double Trainer::ImportanceExponent() const {
  return importance_exponent_.At(static_cast<double>(parts_.experience->buffer().next_id()));
}

bool Trainer::Crossed(std::int64_t frames_before, std::int64_t period) const {
  return frames_ / period > frames_before / period;
}

}  // namespace uper
