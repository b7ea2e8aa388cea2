#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uper/train/config/config_field.h"

namespace uper {

// One `key = value` of a TOML text.
struct TomlEntry {
  std::string key;  // with its tables: "optimizer.learning_rate"
  ConfigValue value;
  int line = 0;
  bool is_empty_table = false;  // a table without keys; `value` holds nothing
  bool is_array = false;        // `items` are its elements; `value` holds nothing
  // The elements of an array: one entry each, without a key. The items of an element that is a
  // table are the table's entries; their keys start at that table.
  std::vector<TomlEntry> items;
};

// All entries in the order of their lines. Throws Error(kUsage) that names `source` and line if the
// text is not TOML. Its file is the only one that includes toml++, which is slow to compile.
std::vector<TomlEntry> ReadToml(std::string_view text, const std::string& source);

}  // namespace uper
