#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "uper/train/config/config_choices.h"

namespace uper {

// A value as the user wrote it. std::monostate stands for a kind that no field accepts (an array, a
// date).
using ConfigValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

// The closed interval a number must lie in; `open_low` excludes the lower end.
struct NumberRange {
  double low = -std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::max();
  bool open_low = false;

  bool Contains(double value) const {
    return (open_low ? value > low : value >= low) && value <= high;
  }
};

// Whether a continued run accepts another value.
enum class OnResume {
  kRefused,      // no: the results would differ
  kMayBeRaised,  // a larger one
  kFree,         // any: the results do not depend on it
};

// Access to an enumeration by the index of its name.
struct ChoiceAccess {
  std::vector<std::string> names;
  std::function<std::size_t()> get;
  std::function<void(std::size_t)> set;
};

// One key of a configuration, bound to the field of one RunConfig, which must outlive it.
struct ConfigField {
  using Target = std::variant<bool*, int*, std::int64_t*, double*, std::string*, ChoiceAccess>;

  std::string key;  // "optimizer.learning_rate"
  Target target;
  NumberRange range;  // unused for other types
  std::string doc;
  OnResume on_resume = OnResume::kRefused;
  // The ValueText() that lets the program choose the value; empty: there is none.
  std::string_view automatic;  // a literal

  // The value as TOML.
  std::string ValueText() const;
  bool IsAutomatic() const { return !automatic.empty() && ValueText() == automatic; }
  // The accepted values in words: "an integer from 1 to 64".
  std::string Expected() const;
  // If the value has the wrong type or is out of range, throws Error(kUsage) and leaves the field
  // unchanged. The message starts with `where` ("run.toml:7").
  void Assign(const ConfigValue& value, std::string_view where) const;
  // Parses the text of a command line (1e6, 1_000_000, true, adam), then as Assign.
  void AssignText(std::string_view text, std::string_view where) const;
};

// Collects fields table by table.
class ConfigFieldList {
 public:
  // Later calls of Add() belong to this table ("" for the top level).
  void Table(std::string_view name) {
    prefix_ = name;
    if (!name.empty()) prefix_ += '.';
  }

  template <typename Number>
    requires std::is_arithmetic_v<Number>
  ConfigField& Add(std::string_view key, Number& field, NumberRange range, std::string doc) {
    return Append(key, &field, range, std::move(doc));
  }
  ConfigField& Add(std::string_view key, bool& field, std::string doc) {
    return Append(key, &field, {}, std::move(doc));
  }
  ConfigField& Add(std::string_view key, std::string& field, std::string doc) {
    return Append(key, &field, {}, std::move(doc));
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  ConfigField& Add(std::string_view key, Enum& field, std::string doc) {
    return Append(key, AccessTo(field), {}, std::move(doc));
  }

  std::vector<ConfigField> Take() { return std::move(fields_); }

 private:
  ConfigField& Append(std::string_view key, ConfigField::Target target, NumberRange range,
                      std::string doc);

  template <typename Enum>
  static ChoiceAccess AccessTo(Enum& field) {
    ChoiceAccess access;
    const auto choices = ChoicesOf<Enum>();
    for (const Choice<Enum>& choice : choices) access.names.emplace_back(choice.name);
    access.get = [&field, choices] {
      std::size_t index = 0;
      while (index < choices.size() && choices[index].value != field) ++index;
      return index;
    };
    access.set = [&field, choices](std::size_t index) { field = choices[index].value; };
    return access;
  }

  std::string prefix_;
  std::vector<ConfigField> fields_;
};

}  // namespace uper
