#include "uper/train/toml_reader.h"

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

void Collect(const toml::table& table, const std::string& prefix, std::vector<TomlEntry>& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const toml::table* const inner = node.as_table();
    const int line = static_cast<int>(node.source().begin.line);
    if (inner == nullptr) {
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
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return entries;
}

}  // namespace uper
