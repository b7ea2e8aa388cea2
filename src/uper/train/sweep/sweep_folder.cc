#include "uper/train/sweep/sweep_folder.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "uper/base/error.h"
#include "uper/base/files/atomic_file.h"
#include "uper/base/files/csv_writer.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/train/config/config_fields.h"

namespace uper {
namespace {

using nlohmann::json;
using Values = std::map<std::string, std::string>;

constexpr int kStateFormat = 1;

constexpr std::array<std::pair<SweepStatus, const char*>, 5> kStatusNames = {
    {{SweepStatus::kPending, "pending"},
     {SweepStatus::kRunning, "running"},
     {SweepStatus::kDone, "done"},
     {SweepStatus::kFailed, "failed"},
     {SweepStatus::kInterrupted, "interrupted"}}};

SweepStatus StatusOf(const std::string& name, const std::string& what) {
  for (const auto& [status, known] : kStatusNames) {
    if (name == known) return status;
  }
  throw Error(ErrorKind::kCorrupt, what + ": unknown status '" + name + "'");
}

std::set<std::string> FreeKeys() {
  RunConfig config;
  std::set<std::string> keys;
  for (const ConfigField& field : ConfigFields(config)) {
    if (field.on_resume != OnResume::kRefused) keys.insert(field.key);
  }
  return keys;
}

// The settings that make a run what it is; `frames`, `threads` and the like may be changed later.
Values IdentityOf(const SweepRun& run) {
  static const std::set<std::string> free_keys = FreeKeys();
  Values values;
  for (const SweepSetting& setting : run.settings) {
    if (!free_keys.contains(setting.key)) values[setting.key] = setting.text;
  }
  return values;
}

[[noreturn]] void RefuseOtherSweep(const SweepFolder& folder, const std::string& problem) {
  throw Error(ErrorKind::kUsage, folder.path().string() + " holds another sweep: " + problem +
                                     "; choose another folder with --out");
}

SweepProgress ProgressFrom(const json& entry, const std::string& what) {
  SweepProgress progress;
  progress.status = StatusOf(checkpoint::JsonMember<std::string>(entry, "status", what), what);
  progress.sessions =
      static_cast<int>(checkpoint::JsonMember<std::int64_t>(entry, "sessions", what));
  if (!checkpoint::JsonMember<json>(entry, "exit_code", what).is_null()) {
    progress.exit_code =
        static_cast<int>(checkpoint::JsonMember<std::int64_t>(entry, "exit_code", what));
  }
  return progress;
}

void ReadStored(const SweepFolder& folder, const SweepPlan& plan, SweepState& state) {
  const std::string what = folder.state().string();
  const json document = checkpoint::ReadJsonFile(folder.state());
  if (checkpoint::JsonMember<std::int64_t>(document, "format", what) != kStateFormat) {
    throw Error(ErrorKind::kCorrupt, what + ": this version reads format 1 only");
  }
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) numbers[plan.runs[i].name] = i;
  for (const json& entry : checkpoint::JsonMember<json>(document, "runs", what)) {
    const std::string name = checkpoint::JsonMember<std::string>(entry, "run", what);
    const auto found = numbers.find(name);
    if (found == numbers.end()) RefuseOtherSweep(folder, "the file has no run " + name);
    if (checkpoint::JsonMember<json>(entry, "identity", what) !=
        json(IdentityOf(plan.runs[found->second]))) {
      RefuseOtherSweep(folder, "the run " + name + " has other settings there");
    }
    state[found->second] = ProgressFrom(entry, what);
  }
}

// As a CSV field.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

std::string NumberOrNothing(const std::optional<double>& number) {
  return number ? NumberText(*number) : "";
}

std::string SummaryRow(const SweepFolder& folder, const SweepPlan& plan, std::size_t number,
                       const SweepProgress& progress) {
  const SweepRun& run = plan.runs[number];
  std::string row = Field(run.name);
  const auto add = [&](const std::string& text) {
    row += ',';
    row += Field(text);
  };
  for (const std::string& key : plan.columns) add(ValueIn(run, key));
  add(SweepStatusName(progress.status));
  add(progress.exit_code ? std::to_string(*progress.exit_code) : "");
  const std::optional<RunSummary> summary = SummaryOf(folder, run);
  add(summary ? NumberOrNothing(summary->final_eval_return) : "");
  add(summary ? NumberOrNothing(summary->best_eval_return) : "");
  add(summary ? std::to_string(summary->frames) : "");
  add(summary ? NumberText(summary->wall_seconds) : "");
  return row + "\n";
}

}  // namespace

std::string SweepStatusName(SweepStatus status) {
  const auto found = std::find_if(kStatusNames.begin(), kStatusNames.end(),
                                  [&](const auto& entry) { return entry.first == status; });
  return found->second;
}

bool IsFinished(const SweepFolder& folder, const SweepRun& run) {
  try {
    const std::optional<std::int64_t> frames = folder.run(run).FinishedFrames();
    return frames && *frames >= run.config.frames;
  } catch (const Error&) {
    return false;  // `uper train` will report what is wrong with it
  }
}

std::optional<RunSummary> SummaryOf(const SweepFolder& folder, const SweepRun& run) {
  if (!IsFinished(folder, run)) return std::nullopt;
  return ReadRunSummary(folder.run(run).summary());
}

SweepState LoadSweepState(const SweepFolder& folder, const SweepPlan& plan) {
  SweepState state(plan.runs.size());
  if (std::filesystem::exists(folder.state())) ReadStored(folder, plan, state);
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (IsFinished(folder, plan.runs[i])) {
      state[i].status = SweepStatus::kDone;
      state[i].exit_code = 0;
    } else if (state[i].status == SweepStatus::kDone) {
      state[i] = {.sessions = state[i].sessions};
    }
  }
  return state;
}

void SaveSweepState(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state) {
  nlohmann::ordered_json document = {{"format", kStateFormat}};
  document["runs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    nlohmann::ordered_json entry = {{"run", plan.runs[i].name},
                                    {"status", SweepStatusName(state[i].status)},
                                    {"exit_code", nullptr},
                                    {"sessions", state[i].sessions},
                                    {"identity", IdentityOf(plan.runs[i])}};
    if (state[i].exit_code) entry["exit_code"] = *state[i].exit_code;
    document["runs"].push_back(std::move(entry));
  }
  WriteFileAtomically(folder.state(), document.dump(1) + "\n");
}

void WriteSweepSummary(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state) {
  std::string text = "run";
  for (const std::string& key : plan.columns) {
    text += ',';
    text += key;
  }
  text += ",status,exit_code,final_eval_return,best_eval_return,frames,wall_seconds\n";
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    text += SummaryRow(folder, plan, i, state[i]);
  }
  WriteFileAtomically(folder.summary(), text);
}

std::string ValueIn(const SweepRun& run, const std::string& key) {
  RunConfig config = run.config;
  for (const ConfigField& field : ConfigFields(config)) {
    if (field.key != key) continue;
    const auto* text = std::get_if<std::string*>(&field.target);
    if (text != nullptr) return **text;
    std::string written = field.ValueText();
    std::erase(written, '"');
    return written;
  }
  return "";
}

}  // namespace uper
