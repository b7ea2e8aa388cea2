#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uper/base/settings_text.h"
#include "uper/train/config/config.h"
#include "uper/train/config/toml_reader.h"

namespace uper {

// Sets one key. Throws Error(kUsage) for an unknown key, a wrong type or a value out of range. The
// message names `where` and the key, and for an unknown key the most similar one.
void SetKey(RunConfig& config, std::string_view key, std::string_view value_text,
            std::string_view where);

// Sets the keys of a TOML text. Other keys keep their values. Errors name source and line.
void ApplyToml(RunConfig& config, std::string_view text, const std::string& source);
void ApplyEntries(RunConfig& config, const std::vector<TomlEntry>& entries,
                  const std::string& source);

// The text of config.toml: every key with its value, and its documentation as a comment. ApplyToml
// of this text gives the same configuration.
std::string DumpToml(RunConfig config);

// Every key in tables of Markdown, for docs/configuration.md.
std::string ConfigDocumentation();

// The keys whose values differ.
std::vector<std::string> DifferingKeys(RunConfig a, RunConfig b);

// The configuration with which `requested` continues a run that has `stored`. Keys with their
// automatic value get the stored one. A key may differ as its OnResume says. Throws Error(kUsage)
// for every other difference; the message names the keys with both values.
RunConfig ConfigForResume(RunConfig stored, RunConfig requested);

}  // namespace uper
