#include "uper/train/config/config_field.h"

#include <algorithm>
#include <cmath>

#include "uper/base/check.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/files/csv_writer.h"
#include "uper/base/overloaded.h"
#include "uper/base/settings_text.h"

namespace uper {
namespace {

// The text as a basic string of TOML.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Described(const ConfigValue& value) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::string("an array, table or date"); },
                 [](bool flag) { return std::string(flag ? "true" : "false"); },
                 [](std::int64_t number) { return std::to_string(number); },
                 [](double number) { return NumberText(number); },
                 [](const std::string& text) { return Quoted(text); }},
      value);
}

[[noreturn]] void Refuse(const ConfigField& field, const std::string& found,
                         std::string_view where) {
  throw Error(ErrorKind::kUsage, std::string(where) + ": " + field.key + " must be " +
                                     field.Expected() + ", not " + found);
}

// Converts an integral value in any notation. Returns false for other values.
bool ToInteger(const ConfigValue& value, std::int64_t* integer) {
  if (const auto* exact = std::get_if<std::int64_t>(&value)) {
    *integer = *exact;
    return true;
  }
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || std::abs(*number) > 0x1p53 || *number != std::floor(*number)) {
    return false;
  }
  *integer = static_cast<std::int64_t>(*number);
  return true;
}

bool ToNumber(const ConfigValue& value, double* number) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    *number = static_cast<double>(*integer);
    return true;
  }
  const auto* real = std::get_if<double>(&value);
  if (real != nullptr) *number = *real;
  return real != nullptr;
}

template <typename Integer>
bool SetInteger(Integer* target, const NumberRange& range, const ConfigValue& value) {
  std::int64_t integer = 0;
  if (!ToInteger(value, &integer) || !range.Contains(static_cast<double>(integer))) return false;
  *target = static_cast<Integer>(integer);
  return true;
}

bool SetNumber(double* target, const NumberRange& range, const ConfigValue& value) {
  double number = 0;
  if (!ToNumber(value, &number) || !range.Contains(number)) return false;  // false for NaN
  *target = number;
  return true;
}

bool IsPlainText(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool SetText(std::string* target, const ConfigValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || !IsPlainText(*text)) return false;
  *target = *text;
  return true;
}

std::string_view FlagText(bool flag) { return flag ? "true" : "false"; }

// A choice with the names "true" and "false" accepts flags too.
bool SetChoice(const ChoiceAccess& target, const ConfigValue& value) {
  std::string_view name;
  if (const auto* flag = std::get_if<bool>(&value)) {
    name = FlagText(*flag);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    name = *text;
  } else {
    return false;
  }
  const auto found = std::find(target.names.begin(), target.names.end(), name);
  if (found == target.names.end()) return false;
  target.set(static_cast<std::size_t>(found - target.names.begin()));
  return true;
}

bool SetFlag(bool* target, const ConfigValue& value) {
  const auto* flag = std::get_if<bool>(&value);
  if (flag != nullptr) *target = *flag;
  return flag != nullptr;
}

std::string RangeText(const NumberRange& range) {
  const std::string from = range.open_low ? "above " : "from ";
  return " " + from + NumberText(range.low) + " to " + NumberText(range.high);
}

std::string ChoicesText(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "one of " : ", ") + name;
  return text;
}

}  // namespace

std::string ConfigField::ValueText() const {
  const auto choice_text = [](const ChoiceAccess& field) {
    const std::string& name = field.names.at(field.get());
    return name == FlagText(true) || name == FlagText(false) ? name : Quoted(name);
  };
  return std::visit(Overloaded{[](bool* field) { return std::string(FlagText(*field)); },
                               [](int* field) { return std::to_string(*field); },
                               [](std::int64_t* field) { return std::to_string(*field); },
                               [](double* field) { return NumberText(*field); },
                               [](std::string* field) { return Quoted(*field); }, choice_text},
                    target);
}

std::string ConfigField::Expected() const {
  return std::visit(Overloaded{[](bool*) { return std::string("true or false"); },
                               [](std::string*) { return std::string("a text"); },
                               [this](double*) { return "a number" + RangeText(range); },
                               [](const ChoiceAccess& field) { return ChoicesText(field.names); },
                               [this](auto*) { return "an integer" + RangeText(range); }},
                    target);
}

void ConfigField::Assign(const ConfigValue& value, std::string_view where) const {
  const bool accepted =
      std::visit(Overloaded{[&](bool* field) { return SetFlag(field, value); },
                            [&](std::string* field) { return SetText(field, value); },
                            [&](double* field) { return SetNumber(field, range, value); },
                            [&](const ChoiceAccess& field) { return SetChoice(field, value); },
                            [&](auto* field) { return SetInteger(field, range, value); }},
                 target);
  if (accepted) return;
  std::string hint;
  const auto* choice = std::get_if<ChoiceAccess>(&target);
  const auto* text = std::get_if<std::string>(&value);
  if (choice != nullptr && text != nullptr) hint = DidYouMean(*text, choice->names);
  Refuse(*this, Described(value) + hint, where);
}

void ConfigField::AssignText(std::string_view text, std::string_view where) const {
  ConfigValue value = std::string(text);
  const bool is_text =
      std::holds_alternative<std::string*>(target) || std::holds_alternative<ChoiceAccess>(target);
  if (is_text) {
    const bool quoted = text.size() >= 2 && text.starts_with('"') && text.ends_with('"');
    if (quoted) value = std::string(text.substr(1, text.size() - 2));
  } else if (text == "true" || text == "false") {
    value = text == "true";
  } else {
    if (const std::optional<Number> number = ParseNumber(text)) {
      std::visit([&](auto parsed) { value = parsed; }, *number);
    }
  }
  Assign(value, where);
}

ConfigField& ConfigFieldList::Append(std::string_view key, ConfigField::Target target,
                                     NumberRange range, std::string doc) {
  fields_.push_back({.key = prefix_ + std::string(key),
                     .target = std::move(target),
                     .range = range,
                     .doc = std::move(doc)});
  return fields_.back();
}

}  // namespace uper
