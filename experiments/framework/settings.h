#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace uper::experiments {

// One key of an experiment that `--set key=value` reaches. Every key is declared once, with its
// default. Parsing, checks, help and the record of a run come from this declaration.
struct SettingInfo {
  enum class Type { kNumber, kInteger, kFlag, kChoice, kList, kFile };

  std::string key;
  Type type = Type::kNumber;
  std::string default_text;  // "true"/"false" for flags, empty for "no file"
  std::string description;   // one line: meaning, unit, when to change it
  double low = 0;            // smallest and largest allowed number
  double high = 0;
  std::vector<std::string> choices;  // for kChoice, and for each item of a kList (a,b,c)
};

// A setting of type kNumber or kInteger.
SettingInfo NumberSetting(std::string key, SettingInfo::Type type, double value, double low,
                          double high, std::string description);

// The values of the declared settings: the defaults, overridden by the user's assignments.
class Settings {
 public:
  // Throws Error(kUsage) for a value of the wrong type or out of range.
  // REQUIRES: every assigned key is declared (see FindSetting).
  Settings(const std::vector<SettingInfo>& declared,
           const std::map<std::string, std::string>& assigned);

  double Number(std::string_view key) const;
  int Integer(std::string_view key) const;
  bool Flag(std::string_view key) const;
  const std::string& Text(std::string_view key) const;  // choices and files
  std::vector<std::string> List(std::string_view key) const;

  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace uper::experiments
