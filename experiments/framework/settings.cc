#include "experiments/framework/settings.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "uper/base/check.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/files/csv_writer.h"
#include "uper/base/settings_text.h"

namespace uper::experiments {
namespace {

// The whole text as a finite number.
std::optional<double> FiniteNumber(const std::string& text) {
  const std::optional<uper::Number> parsed = ParseNumber(text);
  if (!parsed) return std::nullopt;
  const double number = std::visit([](auto value) { return static_cast<double>(value); }, *parsed);
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

[[noreturn]] void ThrowBadValue(const SettingInfo& info, const std::string& value,
                                const std::string& expected) {
  throw Error(ErrorKind::kUsage, "setting '" + info.key + "': '" + value + "' is not " + expected +
                                     " (" + info.description + ")");
}

void CheckNumber(const SettingInfo& info, const std::string& value) {
  const bool integer = info.type == SettingInfo::Type::kInteger;
  const std::optional<double> number = FiniteNumber(value);
  if (!number || (integer && *number != std::floor(*number)) || *number < info.low ||
      *number > info.high) {
    ThrowBadValue(info, value,
                  std::string(integer ? "an integer" : "a number") + " from " +
                      NumberText(info.low) + " to " + NumberText(info.high));
  }
}

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> items(1);
  for (const char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

void CheckChoice(const SettingInfo& info, const std::string& value) {
  if (std::find(info.choices.begin(), info.choices.end(), value) != info.choices.end()) return;
  std::string choices;
  for (const std::string& choice : info.choices) choices += (choices.empty() ? "" : ", ") + choice;
  ThrowBadValue(info, value, "one of " + choices + DidYouMean(value, info.choices));
}

void CheckValue(const SettingInfo& info, const std::string& value) {
  switch (info.type) {
    case SettingInfo::Type::kNumber:
    case SettingInfo::Type::kInteger:
      CheckNumber(info, value);
      break;
    case SettingInfo::Type::kFlag:
      if (value != "true" && value != "false") ThrowBadValue(info, value, "true or false");
      break;
    case SettingInfo::Type::kChoice:
      CheckChoice(info, value);
      break;
    case SettingInfo::Type::kList:
      for (const std::string& item : SplitList(value)) CheckChoice(info, item);
      break;
    case SettingInfo::Type::kFile:
      break;
  }
}

}  // namespace

SettingInfo NumberSetting(std::string key, SettingInfo::Type type, double value, double low,
                          double high, std::string description) {
  return {.key = std::move(key),
          .type = type,
          .default_text = type == SettingInfo::Type::kInteger
                              ? std::to_string(static_cast<long long>(value))
                              : NumberText(value),
          .description = std::move(description),
          .low = low,
          .high = high,
          .choices = {}};
}

Settings::Settings(const std::vector<SettingInfo>& declared,
                   const std::map<std::string, std::string>& assigned) {
  for (const SettingInfo& info : declared) {
    const auto found = assigned.find(info.key);
    const std::string& value = found == assigned.end() ? info.default_text : found->second;
    CheckValue(info, value);
    values_[info.key] = value;
  }
  for (const auto& [key, value] : assigned) {
    UPER_CHECK(values_.contains(key), "an assigned setting must be declared");
  }
}

double Settings::Number(std::string_view key) const {
  const std::optional<double> number = FiniteNumber(Text(key));
  UPER_CHECK(number.has_value(), "checked at construction");
  return *number;
}

int Settings::Integer(std::string_view key) const { return static_cast<int>(Number(key)); }

bool Settings::Flag(std::string_view key) const { return Text(key) == "true"; }

const std::string& Settings::Text(std::string_view key) const {
  const auto found = values_.find(key);
  UPER_CHECK(found != values_.end(), "setting '" + std::string(key) + "' is not declared");
  return found->second;
}

std::vector<std::string> Settings::List(std::string_view key) const { return SplitList(Text(key)); }

}  // namespace uper::experiments
