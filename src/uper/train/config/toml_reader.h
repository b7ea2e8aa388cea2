#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uper/train/config/config_fields.h"

namespace uper {

// One `key = value` of a TOML text.
struct TomlEntry {
  std::string key;  // with its tables: "optimizer.learning_rate"
  ConfigValue value;
  int line = 0;
  bool is_empty_table = false;  // a table without keys; `value` holds nothing
  bool is_array = false;        // `items` are its elements; `value` holds nothing
  // Of an array: one entry without key an element; of an element that is a table: its entries, with
  // keys from that table on.
  std::vector<TomlEntry> items;
};

// All entries in the order of their lines. Throws Error(kUsage) with `source` and line if the text
// is not TOML. The only user of toml++, which is slow to compile.
std::vector<TomlEntry> ReadToml(std::string_view text, const std::string& source);

}  // namespace uper
