#include "uper/train/sweep/sweep_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "uper/base/did_you_mean.h"
#include "uper/base/error.h"
#include "uper/train/config/agent_files.h"
#include "uper/train/config/config_fields.h"
#include "uper/train/config/config_io.h"
#include "uper/train/config/resolve_config.h"

namespace uper {
namespace {

constexpr std::size_t kMostRuns = 10'000;
constexpr std::size_t kLongestName = 200;  // file systems allow 255 bytes
const char* const kEnvironmentKey = "environment.name";
const char* const kAgentKey = "agent.name";

// The kinds of entry at the start of a key of a sweep file.
const std::map<std::string, std::string>& ShortKeys() {
  static const std::map<std::string, std::string> keys = {
      {"agents", kAgentKey}, {"environments", kEnvironmentKey}, {"seeds", "seed"}};
  return keys;
}

std::vector<ConfigField> SlurmFields(SlurmOptions& o) {
  ConfigFieldList list;
  list.Table("slurm");
  list.Add("partition", o.partition, "Where to queue.");
  list.Add("account", o.account, "What to charge.");
  list.Add("qos", o.qos, "Quality of service.");
  list.Add("constraint", o.constraint, "Features a node must have.");
  list.Add("time", o.time, "Limit of one session of a run, as in sbatch: \"1-00:00:00\".");
  list.Add("memory", o.memory, "Of one run: \"4G\".");
  list.Add("cpus", o.cpus, NumberRange{0, 1024}, "Of one run; 0: as many as it has threads.");
  list.Add("gpus", o.gpus, NumberRange{0, 64}, "Of one run.");
  list.Add("max_running", o.max_running, NumberRange{0, 100'000}, "Runs at a time; 0: no bound.");
  list.Add("warning_seconds", o.warning_seconds, NumberRange{1, 65535},
           "So long before the time limit a run is told to save; it is then queued again.");
  list.Add("extra", o.extra, "Further options of sbatch, as in a #SBATCH line.");
  return list.Take();
}

std::string WithoutQuotes(const std::string& text) {
  const bool quoted = text.size() >= 2 && text.starts_with('"') && text.ends_with('"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

class Reader {
 public:
  explicit Reader(std::string source) : source_(std::move(source)) {}

  using Settings = std::vector<SweepSetting>;

  Settings fixed;
  std::vector<Settings> grid;    // one element per key: its values
  std::vector<Settings> points;  // of [[list]]
  SlurmOptions slurm;

  void Read(const std::vector<TomlEntry>& entries) {
    for (const TomlEntry& entry : entries) ReadEntry(entry);
  }

 private:
  std::string Where(const TomlEntry& entry) const {
    return source_ + ":" + std::to_string(entry.line);
  }
  [[noreturn]] void Refuse(const TomlEntry& entry, const std::string& problem) const {
    throw Error(ErrorKind::kUsage, Where(entry) + ": " + problem);
  }

  void ReadEntry(const TomlEntry& entry) {
    const std::size_t dot = entry.key.find('.');
    const std::string table = entry.key.substr(0, dot);
    const std::string rest = dot == std::string::npos ? "" : entry.key.substr(dot + 1);
    const auto shorthand = ShortKeys().find(entry.key);
    const bool is_table = table == "fixed" || table == "grid" || table == "slurm";
    if (shorthand != ShortKeys().end()) {
      ReadGrid(entry, shorthand->second);
    } else if (entry.key == "list") {
      ReadList(entry);
    } else if (entry.is_empty_table && is_table && rest.empty()) {
      return;
    } else if (entry.is_empty_table && is_table && table != "slurm") {
      ApplyEntries(scratch_, {{.key = rest, .line = entry.line, .is_empty_table = true}}, source_);
    } else if (table == "fixed" && !rest.empty()) {
      Claim(entry, rest);
      fixed.push_back(SettingOf(entry, rest));
    } else if (table == "grid" && !rest.empty()) {
      ReadGrid(entry, rest);
    } else if (table == "slurm" && !rest.empty()) {
      ReadSlurm(entry);
    } else {
      RefuseUnknown(entry);
    }
  }

  [[noreturn]] void RefuseUnknown(const TomlEntry& entry) const {
    const std::vector<std::string> keys = ConfigKeyNames();
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) {
      Refuse(entry, "'" + entry.key + "' is a key of the configuration; put it into [fixed] (one " +
                        "value) or [grid] (a list of values)");
    }
    const std::string first = entry.key.substr(0, entry.key.find('.'));
    const std::vector<std::string> known = {"agents", "environments", "seeds", "fixed",
                                            "grid",   "list",         "slurm"};
    Refuse(entry, "unknown key '" + first + "'" + DidYouMean(first, known) +
                      "; a sweep has agents, environments, seeds, [fixed], [grid], [[list]] and "
                      "[slurm]");
  }

  // A key belongs to one place of the file.
  void Claim(const TomlEntry& entry, const std::string& key) {
    const auto [found, is_new] = claimed_.emplace(key, entry.line);
    if (!is_new) {
      Refuse(entry, "'" + key + "' has values in line " + std::to_string(found->second) +
                        " already; keep one of the two");
    }
  }

  // Checks key, type and range against the configuration's own table.
  SweepSetting SettingOf(const TomlEntry& value, const std::string& key) {
    TomlEntry named = value;
    named.key = key;
    ApplyEntries(scratch_, {named}, source_);
    const std::string where = Where(value);
    for (const ConfigField& field : ConfigFields(scratch_)) {
      if (field.key != key) continue;
      const auto* text = std::get_if<std::string*>(&field.target);
      const std::string written = text != nullptr ? **text : WithoutQuotes(field.ValueText());
      if (key == kAgentKey) CheckAgent(written, where);
      return {.key = key, .text = written, .where = where};
    }
    return {};  // not reached: ApplyEntries refuses unknown keys
  }

  static void CheckAgent(const std::string& name, const std::string& where) {
    try {
      FindAgentFile("minatar", name);
    } catch (const Error& error) {
      throw Error(error.kind(), where + ": " + error.what());
    }
  }

  void ReadGrid(const TomlEntry& entry, const std::string& key) {
    Claim(entry, key);
    if (!entry.is_array) {
      SettingOf(entry, key);  // an unknown key is the more likely mistake
      Refuse(entry, "'" + entry.key + "' needs a list of values, like [1, 2]; one value for all " +
                        "runs belongs to [fixed]");
    }
    Settings values;
    for (const TomlEntry& item : entry.items) {
      values.push_back(SettingOf(item, key));
      const bool twice = std::any_of(values.begin(), values.end() - 1, [&](const auto& other) {
        return other.text == values.back().text;
      });
      if (twice) Refuse(item, "'" + key + "' lists " + values.back().text + " twice");
    }
    if (values.empty()) Refuse(entry, "'" + entry.key + "' lists no value");
    grid.push_back(std::move(values));
  }

  static bool SameValues(const Settings& a, const Settings& b) {
    std::map<std::string, std::string> values_a, values_b;
    for (const SweepSetting& setting : a) values_a[setting.key] = setting.text;
    for (const SweepSetting& setting : b) values_b[setting.key] = setting.text;
    return values_a == values_b;
  }

  void ReadList(const TomlEntry& entry) {
    const bool tables = entry.is_array && !entry.items.empty() &&
                        std::all_of(entry.items.begin(), entry.items.end(),
                                    [](const TomlEntry& item) { return !item.items.empty(); });
    if (!tables) Refuse(entry, "'list' is written as tables, each with keys: [[list]]");
    std::map<std::string, TomlEntry> keys;
    for (const TomlEntry& item : entry.items) {
      Settings point;
      for (const TomlEntry& value : item.items) {
        const auto shorthand = ShortKeys().find(value.key);
        const bool is_number_of_environments = value.key == "environments" && !value.is_array;
        if (shorthand != ShortKeys().end() && !is_number_of_environments) {
          Refuse(value, "a point of [[list]] has one value per key: write " + shorthand->second);
        }
        point.push_back(SettingOf(value, value.key));
        keys.emplace(value.key, value);
      }
      if (std::any_of(points.begin(), points.end(),
                      [&](const Settings& other) { return SameValues(other, point); })) {
        Refuse(item, "this point of [[list]] is there twice");
      }
      points.push_back(std::move(point));
    }
    for (const auto& [key, value] : keys) Claim(value, key);
  }

  void ReadSlurm(const TomlEntry& entry) {
    const std::vector<ConfigField> fields = SlurmFields(slurm);
    std::vector<std::string> known;
    for (const ConfigField& field : fields) {
      if (field.key == entry.key) return field.Assign(entry.value, Where(entry));
      known.push_back(field.key);
    }
    Refuse(entry, "unknown key '" + entry.key + "'" + DidYouMean(entry.key, known));
  }

  const std::string source_;
  RunConfig scratch_;                   // only to check values
  std::map<std::string, int> claimed_;  // key -> line
};

// All combinations, the first key varying slowest.
std::vector<Reader::Settings> Combinations(const Reader& reader, const std::string& source) {
  std::vector<Reader::Settings> all =
      reader.points.empty() ? std::vector<Reader::Settings>(1) : reader.points;
  for (const Reader::Settings& values : reader.grid) {
    if (all.size() > kMostRuns / values.size()) {
      throw Error(ErrorKind::kUsage,
                  source + ": more than " + std::to_string(kMostRuns) + " runs; list fewer values");
    }
    std::vector<Reader::Settings> longer;
    for (const Reader::Settings& start : all) {
      for (const SweepSetting& value : values) {
        longer.push_back(start);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<std::string> Columns(const Reader& reader) {
  std::vector<std::string> columns{kEnvironmentKey, kAgentKey};
  const auto add = [&](const std::string& key) {
    const bool known =
        key == "seed" || std::find(columns.begin(), columns.end(), key) != columns.end();
    if (!known) columns.push_back(key);
  };
  for (const Reader::Settings& point : reader.points) {
    for (const SweepSetting& setting : point) add(setting.key);
  }
  for (const Reader::Settings& values : reader.grid) {
    if (values.size() > 1) add(values.front().key);
  }
  columns.push_back("seed");
  return columns;
}

// Only agent.name and environment.name have the same last part; equal names get numbers.
std::string LastPart(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::string AsFileName(std::string text) {
  for (char& c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-' || c == '=';
    if (!plain) c = '-';
  }
  return text;
}

// "minatar-breakout_qr-ens-uper_learning_rate=3e-05_seed=1"
std::string NameOf(const SweepRun& run, const std::vector<std::string>& columns) {
  std::string name = run.config.environment.name + "_" + run.config.agent.name;
  for (std::size_t i = 2; i + 1 < columns.size(); ++i) {
    const std::string& key = columns[i];
    const std::string_view text = run.Text(key);
    if (text.empty()) continue;
    name += "_" + LastPart(key) + "=" + std::string(text);
  }
  name = AsFileName(name).substr(0, kLongestName);
  return name + "_seed=" + std::to_string(run.config.seed);
}

void NameAll(SweepPlan& plan) {
  std::set<std::string> taken;
  for (SweepRun& run : plan.runs) {
    const std::string name = NameOf(run, plan.columns);
    run.name = name;
    for (int number = 2; !taken.insert(run.name).second; ++number) {
      run.name = name + "_" + std::to_string(number);
    }
  }
}

RunConfig Resolved(const Reader::Settings& settings, const std::string& source) {
  ConfigInputs inputs;
  std::string values;
  for (const SweepSetting& setting : settings) {
    inputs.flags.push_back({.flag = setting.where, .key = setting.key, .value = setting.text});
    values += (values.empty() ? "" : ", ") + setting.key + " = " + setting.text;
  }
  try {
    return ResolveConfig(inputs);
  } catch (const Error& error) {
    throw Error(error.kind(), source + ": the run with " + values + ": " + error.what());
  }
}

bool Sets(const Reader::Settings& settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const SweepSetting& setting) { return setting.key == key; });
}

}  // namespace

std::string_view SweepRun::Text(std::string_view key) const {
  for (const SweepSetting& setting : settings) {
    if (setting.key == key) return setting.text;
  }
  return {};
}

int SweepPlan::MostThreads() const {
  int most = 1;
  for (const SweepRun& run : runs) {
    if (run.config.threads == 0) return 0;
    most = std::max(most, run.config.threads);
  }
  return most;
}

SweepPlan ParseSweepPlan(std::string_view text, const std::string& source) {
  Reader reader(source);
  const std::vector<TomlEntry> entries = ReadToml(text, source);
  if (entries.empty()) {  // probably a mistake, not a sweep of one default run
    throw Error(ErrorKind::kUsage, source +
                                       " says nothing; a sweep has agents, environments, "
                                       "seeds, [fixed], [grid], [[list]] and [slurm]");
  }
  reader.Read(entries);
  SweepPlan plan{.columns = Columns(reader), .slurm = reader.slurm};
  for (const Reader::Settings& varied : Combinations(reader, source)) {
    SweepRun run;
    run.settings = reader.fixed;
    run.settings.insert(run.settings.end(), varied.begin(), varied.end());
    // Runs side by side share the machine: one core each unless the file says otherwise.
    if (!Sets(run.settings, "threads")) run.settings.push_back({"threads", "1", ""});
    run.config = Resolved(run.settings, source);
    plan.runs.push_back(std::move(run));
  }
  NameAll(plan);
  return plan;
}

}  // namespace uper
