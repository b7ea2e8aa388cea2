#include "uper/train/config/toml_reader.h"

#include <toml++/toml.h>

#include <algorithm>

#include "uper/base/error.h"

namespace uper {
namespace {

ConfigValue ValueOf(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* integer = node.as_integer()) return std::int64_t{integer->get()};
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  return std::monostate{};
}

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

void SortByLine(std::vector<TomlEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
}

void Collect(const toml::table& table, const std::string& prefix, std::vector<TomlEntry>& out);

TomlEntry ArrayEntry(const std::string& key, const toml::array& array) {
  TomlEntry entry{.key = key, .line = LineOf(array), .is_array = true};
  for (const toml::node& node : array) {
    TomlEntry item{.value = ValueOf(node), .line = LineOf(node)};
    if (const toml::array* const inner = node.as_array()) item = ArrayEntry("", *inner);
    if (const toml::table* const inner = node.as_table()) {
      Collect(*inner, "", item.items);
      SortByLine(item.items);
    }
    entry.items.push_back(std::move(item));
  }
  return entry;
}

void Collect(const toml::table& table, const std::string& prefix, std::vector<TomlEntry>& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const toml::table* const inner = node.as_table();
    const int line = LineOf(node);
    if (const toml::array* const array = node.as_array()) {
      out.push_back(ArrayEntry(key, *array));
    } else if (inner == nullptr) {
      out.push_back({.key = key, .value = ValueOf(node), .line = line});
    } else if (inner->empty()) {
      out.push_back({.key = key, .line = line, .is_empty_table = true});
    } else {
      Collect(*inner, key + ".", out);
    }
  }
}

}  // namespace

std::vector<TomlEntry> ReadToml(std::string_view text, const std::string& source) {
  std::vector<TomlEntry> entries;
  try {
    Collect(toml::parse(text, source), "", entries);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::kUsage, source + ":" + std::to_string(error.source().begin.line) +
                                       ": not valid TOML: " + std::string(error.description()));
  }
  SortByLine(entries);
  return entries;
}

}  // namespace uper
