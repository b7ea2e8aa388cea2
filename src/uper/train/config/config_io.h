#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uper/train/config/config.h"
#include "uper/train/config/toml_reader.h"

namespace uper {

// Sets one key. An unknown key, a wrong type and a value out of range throw Error(kUsage) naming
// `where`, the key and, for an unknown one, the nearest that exists.
void SetKey(RunConfig& config, std::string_view key, std::string_view value_text,
            std::string_view where);

// Sets the keys of a TOML text; the others keep their values. Errors name source and line.
void ApplyToml(RunConfig& config, std::string_view text, const std::string& source);
void ApplyEntries(RunConfig& config, const std::vector<TomlEntry>& entries,
                  const std::string& source);

// "key=value" into its parts. Throws Error(kUsage) if there is no key or no '='.
std::pair<std::string, std::string> SplitSetting(std::string_view text);

// config.toml: every key with its value, the documentation of each as a comment. Read back it gives
// the same configuration.
std::string DumpToml(RunConfig config);

// Every key in tables of Markdown: docs/configuration.md.
std::string ConfigDocumentation();

// Keys whose values differ.
std::vector<std::string> DifferingKeys(RunConfig a, RunConfig b);

// `requested` as it may continue a run made with `stored`: keys left to be chosen automatically get
// the stored choice; `frames` may be larger, threads and checkpoint_every_frames may be anything.
// Every other difference throws Error(kUsage) that names the keys with both values.
RunConfig ConfigForResume(RunConfig stored, RunConfig requested);

}  // namespace uper
