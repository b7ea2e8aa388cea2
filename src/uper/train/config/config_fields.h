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

#include "uper/train/config/config.h"
#include "uper/train/config/config_choices.h"

namespace uper {

// A value as it was written, before a field accepts it. std::monostate stands for what no field
// takes (an array, a date).
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

// What a changed value means for a run that is continued.
enum class OnResume {
  kRefused,      // it would be another run
  kMayBeRaised,  // a larger value continues the run
  kFree,         // results do not depend on it
};

// An enumeration seen as an index into its names.
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
  NumberRange range;  // of numbers
  std::string doc;
  OnResume on_resume = OnResume::kRefused;
  std::string automatic;  // ValueText() that stands for "choose for me"; empty: there is none

  // The value as TOML.
  std::string ValueText() const;
  bool IsAutomatic() const { return !automatic.empty() && ValueText() == automatic; }
  // What the field accepts, in words: "an integer from 1 to 64".
  std::string Expected() const;
  // Throws Error(kUsage), its message starting with `where` ("run.toml:7"), if the value has the
  // wrong type or is out of range; the field is then unchanged.
  void Assign(const ConfigValue& value, std::string_view where) const;
  // The same from the text of a command line: 1e6, 1_000_000, true, adam.
  void AssignText(std::string_view text, std::string_view where) const;
};

// Every key of the configuration, in the order of config.toml: top level first, then the tables.
std::vector<ConfigField> ConfigFields(RunConfig& config);

// The key names alone.
std::vector<std::string> ConfigKeyNames();

// Collects the fields of one component after the other.
class ConfigFieldList {
 public:
  // Keys added from now on belong to this table ("" for the top level).
  void Table(std::string_view name) {
    prefix_ = name;
    if (!name.empty()) prefix_ += '.';
  }

  template <typename Number>
  requires std::is_arithmetic_v<Number> ConfigField& Add(std::string_view key, Number& field,
                                                         NumberRange range, std::string doc) {
    return Append(key, &field, range, std::move(doc));
  }
  ConfigField& Add(std::string_view key, bool& field, std::string doc) {
    return Append(key, &field, {}, std::move(doc));
  }
  ConfigField& Add(std::string_view key, std::string& field, std::string doc) {
    return Append(key, &field, {}, std::move(doc));
  }
  template <typename Enum>
  requires std::is_enum_v<Enum> ConfigField& Add(std::string_view key, Enum& field,
                                                 std::string doc) {
    return Append(key, AccessTo(field), {}, std::move(doc));
  }

  std::vector<ConfigField> Take() { return std::move(fields_); }

 private:
  ConfigField& Append(std::string_view key, ConfigField::Target target, NumberRange range,
                      std::string doc);

  template <typename Enum>
  static ChoiceAccess AccessTo(Enum& field) {
    ChoiceAccess access;
    for (const Choice<Enum>& choice : kChoices<Enum>) access.names.emplace_back(choice.name);
    access.get = [&field] {
      std::size_t index = 0;
      while (index < kChoices<Enum>.size() && kChoices<Enum>[index].value != field) ++index;
      return index;
    };
    access.set = [&field](std::size_t index) { field = kChoices<Enum>[index].value; };
    return access;
  }

  std::string prefix_;
  std::vector<ConfigField> fields_;
};

}  // namespace uper
