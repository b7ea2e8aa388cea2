#include "experiments/framework/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "uper/base/check.h"
#include "uper/base/did_you_mean.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments {
namespace {

// The whole text as a number; underscores may group digits (1_000_000).
bool ParseNumber(std::string text, double* number) {
  std::erase(text, '_');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(*number);
}

[[noreturn]] void ThrowBadValue(const SettingInfo& info, const std::string& value,
                                const std::string& expected) {
  throw Error(ErrorKind::kUsage, "setting '" + info.key + "': '" + value + "' is not " + expected +
                                     " (" + info.description + ")");
}

void CheckNumber(const SettingInfo& info, const std::string& value) {
  const bool integer = info.type == SettingInfo::Type::kInteger;
  double number = 0;
  if (!ParseNumber(value, &number) || (integer && number != std::floor(number)) ||
      number < info.low || number > info.high) {
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
          .default_text = NumberText(value),
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
  double number = 0;
  UPER_CHECK(ParseNumber(Text(key), &number), "checked at construction");
  return number;
}

int Settings::Integer(std::string_view key) const { return static_cast<int>(Number(key)); }

bool Settings::Flag(std::string_view key) const { return Text(key) == "true"; }

const std::string& Settings::Text(std::string_view key) const {
  const auto found = values_.find(key);
  UPER_CHECK(found != values_.end(), "setting '" + std::string(key) + "' is not declared");
  return found->second;
}

std::vector<std::string> Settings::List(std::string_view key) const { return SplitList(Text(key)); }

std::pair<std::string, std::string> SplitAssignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorKind::kUsage, "--set takes key=value, not '" + text + "'");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace uper::experiments
