#include "experiments/framework/settings.h"

#include <gtest/gtest.h>

#include "uper/base/error_for_tests.h"

namespace uper::experiments {
namespace {

using Type = SettingInfo::Type;

const std::vector<SettingInfo> kDeclared = {
    {.key = "rate", .default_text = "0.5", .description = "a rate", .low = 0, .high = 1},
    {.key = "count", .type = Type::kInteger, .default_text = "3", .low = 1, .high = 2e6},
    {.key = "weights", .type = Type::kFlag, .default_text = "false"},
    {.key = "form", .type = Type::kChoice, .default_text = "a", .choices = {"a", "b"}},
    {.key = "forms", .type = Type::kList, .default_text = "a,b", .choices = {"a", "b", "c"}},
    {.key = "map", .type = Type::kFile, .default_text = ""},
};

void ExpectRefused(const std::string& key, const std::string& value, const std::string& word) {
  const std::string message = Refusal([&] { Settings(kDeclared, {{key, value}}); });
  EXPECT_NE(message.find(key), std::string::npos) << message;
  EXPECT_NE(message.find(word), std::string::npos) << message;
}

TEST(SettingsTest, DefaultsHold) {
  const Settings settings(kDeclared, {});
  EXPECT_EQ(settings.Number("rate"), 0.5);
  EXPECT_EQ(settings.Integer("count"), 3);
  EXPECT_FALSE(settings.Flag("weights"));
  EXPECT_EQ(settings.Text("form"), "a");
  EXPECT_EQ(settings.List("forms"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(settings.Text("map"), "");
}

TEST(SettingsTest, AssignmentsWin) {
  const Settings settings(kDeclared, {{"rate", "1e-3"},
                                      {"count", "1_000_000"},
                                      {"weights", "true"},
                                      {"form", "b"},
                                      {"forms", "c"}});
  EXPECT_EQ(settings.Number("rate"), 1e-3);
  EXPECT_EQ(settings.Integer("count"), 1'000'000);
  EXPECT_TRUE(settings.Flag("weights"));
  EXPECT_EQ(settings.Text("form"), "b");
  EXPECT_EQ(settings.List("forms"), std::vector<std::string>{"c"});
}

TEST(SettingsTest, RefusesWrongValuesWithTheReason) {
  ExpectRefused("rate", "1.5", "from 0 to 1");
  ExpectRefused("rate", "-0.1", "from 0 to 1");
  ExpectRefused("rate", "nan", "number");
  ExpectRefused("rate", "inf", "number");
  ExpectRefused("rate", "0.5x", "0.5x");
  ExpectRefused("rate", "", "number");
  ExpectRefused("count", "2.5", "integer");
  ExpectRefused("count", "0", "from 1");
  ExpectRefused("weights", "yes", "true or false");
  ExpectRefused("form", "c", "one of a, b");
  ExpectRefused("forms", "a,,b", "one of a, b, c");
}

}  // namespace
}  // namespace uper::experiments
