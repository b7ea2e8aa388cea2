#include "uper/base/settings_text.h"

#include <gtest/gtest.h>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ParseNumberTest, ReadsIntegersAndNumbers) {
  EXPECT_EQ(ParseNumber("42"), Number(std::int64_t{42}));
  EXPECT_EQ(ParseNumber("-1_000_000"), Number(std::int64_t{-1'000'000}));
  EXPECT_EQ(ParseNumber("+3"), Number(std::int64_t{3}));
  EXPECT_EQ(ParseNumber("1e6"), Number(1e6));
  EXPECT_EQ(ParseNumber("0.5"), Number(0.5));
  EXPECT_EQ(ParseNumber("9223372036854775808"), Number(0x1p63)) << "too large for an integer";
}

TEST(ParseNumberTest, RefusesAnythingElse) {
  for (const char* text : {"", "_", "1_", "_1", "1__0", "0.5x", "x", "1 ", "+", "--1"}) {
    EXPECT_EQ(ParseNumber(text), std::nullopt) << text;
  }
}

TEST(SplitSettingTest, SplitsAtTheFirstEqualsSign) {
  EXPECT_EQ(SplitSetting("a=b=c"), (std::pair<std::string, std::string>{"a", "b=c"}));
  EXPECT_EQ(SplitSetting("a="), (std::pair<std::string, std::string>{"a", ""}));
  EXPECT_THROW(SplitSetting("a"), Error);
  EXPECT_THROW(SplitSetting("=b"), Error);
}

}  // namespace
}  // namespace uper
