#include "uper/train/config/config_io.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "uper/base/check.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/markdown.h"
#include "uper/train/config/config_fields.h"

namespace uper {
namespace {

std::vector<std::string> KeysOf(const std::vector<ConfigField>& fields) {
  std::vector<std::string> keys;
  for (const ConfigField& field : fields) keys.push_back(field.key);
  return keys;
}

[[noreturn]] void RefuseKey(const std::vector<std::string>& known, std::string_view key,
                            std::string_view where) {
  throw Error(ErrorKind::kUsage, std::string(where) + ": unknown key '" + std::string(key) + "'" +
                                     DidYouMean(key, known));
}

const ConfigField& FindField(const std::vector<ConfigField>& fields, std::string_view key,
                             std::string_view where) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const ConfigField& field) { return field.key == key; });
  if (found == fields.end()) RefuseKey(KeysOf(fields), key, where);
  return *found;
}

std::string TableOf(std::string_view key) {
  const std::size_t dot = key.find('.');
  return dot == std::string_view::npos ? "" : std::string(key.substr(0, dot));
}

std::vector<std::string> TablesOf(const std::vector<ConfigField>& fields) {
  std::set<std::string> tables;
  for (const ConfigField& field : fields) tables.insert(TableOf(field.key));
  return {tables.begin(), tables.end()};
}

// The text as comment lines of TOML, at most 100 columns wide.
std::string Comment(const std::string& text) {
  std::istringstream words(text);
  std::string comment = "#";
  std::size_t columns = 1;
  for (std::string word; words >> word;) {
    if (columns + 1 + word.size() > 100) {
      comment += "\n#";
      columns = 1;
    }
    comment += ' ';
    comment += word;
    columns += 1 + word.size();
  }
  return comment + "\n";
}

std::string ResumeText(OnResume on_resume) {
  switch (on_resume) {
    case OnResume::kRefused:
      return "no";
    case OnResume::kMayBeRaised:
      return "may be raised";
    case OnResume::kFree:
      return "yes";
  }
  return "";
}

bool MayContinue(const ConfigField& stored, const ConfigField& requested) {
  if (stored.ValueText() == requested.ValueText()) return true;
  if (stored.on_resume == OnResume::kFree) return true;
  if (stored.on_resume != OnResume::kMayBeRaised) return false;
  return *std::get<std::int64_t*>(requested.target) > *std::get<std::int64_t*>(stored.target);
}

std::string Difference(const ConfigField& stored, const ConfigField& requested) {
  const bool may_grow = stored.on_resume == OnResume::kMayBeRaised;
  return stored.key + " (the run has " + stored.ValueText() + ", asked for " +
         requested.ValueText() + (may_grow ? "; it may only be raised)" : ")");
}

}  // namespace

void SetKey(RunConfig& config, std::string_view key, std::string_view value_text,
            std::string_view where) {
  const std::vector<ConfigField> fields = ConfigFields(config);
  FindField(fields, key, where).AssignText(value_text, where);
}

void ApplyToml(RunConfig& config, std::string_view text, const std::string& source) {
  ApplyEntries(config, ReadToml(text, source), source);
}

void ApplyEntries(RunConfig& config, const std::vector<TomlEntry>& entries,
                  const std::string& source) {
  const std::vector<ConfigField> fields = ConfigFields(config);
  for (const TomlEntry& entry : entries) {
    const std::string where = source + ":" + std::to_string(entry.line);
    if (entry.is_empty_table) {
      const std::vector<std::string> tables = TablesOf(fields);
      const bool known = std::find(tables.begin(), tables.end(), entry.key) != tables.end();
      if (!known) RefuseKey(tables, entry.key, where);
    } else {
      FindField(fields, entry.key, where).Assign(entry.value, where);
    }
  }
}

std::string DumpToml(RunConfig config) {
  std::string text = "# Every key of this run. `uper train` with this file gives the same run.\n";
  std::string table;
  for (const ConfigField& field : ConfigFields(config)) {
    if (TableOf(field.key) != table) {
      table = TableOf(field.key);
      text += "\n[" + table + "]\n";
    }
    const std::string name = field.key.substr(table.empty() ? 0 : table.size() + 1);
    text += '\n';
    text += Comment(field.doc) + name + " = " + field.ValueText() + "\n";
  }
  return text;
}

std::string ConfigDocumentation() {
  RunConfig config;
  std::string text;
  std::string table = "(none)";
  for (const ConfigField& field : ConfigFields(config)) {
    if (TableOf(field.key) != table) {
      table = TableOf(field.key);
      text += text.empty() ? "## " : "\n## ";
      text += table.empty() ? "Top level" : table;
      text += "\n\n| key | values | default | free on resume | meaning |\n|---|---|---|---|---|\n";
    }
    text += "| `" + field.key + "` | " + MarkdownCell(field.Expected()) + " | `" +
            field.ValueText() + "` | " + ResumeText(field.on_resume) + " | " +
            MarkdownCell(field.doc) + " |\n";
  }
  return text;
}

std::vector<std::string> DifferingKeys(RunConfig a, RunConfig b) {
  const std::vector<ConfigField> fields_a = ConfigFields(a);
  const std::vector<ConfigField> fields_b = ConfigFields(b);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < fields_a.size(); ++i) {
    if (fields_a[i].ValueText() != fields_b[i].ValueText()) keys.push_back(fields_a[i].key);
  }
  return keys;
}

RunConfig ConfigForResume(RunConfig stored, RunConfig requested) {
  const std::vector<ConfigField> have = ConfigFields(stored);
  const std::vector<ConfigField> want = ConfigFields(requested);
  std::string refused;
  for (std::size_t i = 0; i < have.size(); ++i) {
    if (want[i].IsAutomatic()) {
      want[i].AssignText(have[i].ValueText(), "config.toml of the run");
    } else if (!MayContinue(have[i], want[i])) {
      if (!refused.empty()) refused += ", ";
      refused += Difference(have[i], want[i]);
    }
  }
  if (refused.empty()) return requested;
  throw Error(ErrorKind::kUsage, "the folder holds a run with another configuration: " + refused +
                                     "; choose another folder with --out, or ask for the same");
}

}  // namespace uper
