#include "uper/base/check.h"

#include <gtest/gtest.h>

#include <string>

namespace uper {
namespace {

TEST(CheckTest, FailureSaysWhatAndWhere) {
  const int line = __LINE__ + 2;
  try {
    UPER_CHECK(1 + 1 == 3, "arithmetic " + std::string("is broken"));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    const std::string message = error.what();
    EXPECT_NE(message.find("check_test.cc:" + std::to_string(line)), std::string::npos) << message;
    EXPECT_NE(message.find("1 + 1 == 3"), std::string::npos) << message;
    EXPECT_NE(message.find("arithmetic is broken"), std::string::npos) << message;
  }
}

TEST(CheckTest, MessageIsMadeOnFailureOnly) {
  int made = 0;
  const auto message = [&] {
    ++made;
    return "message";
  };
  UPER_CHECK(true, message());
  EXPECT_EQ(made, 0);
  EXPECT_THROW(UPER_CHECK(false, message()), Error);
  EXPECT_EQ(made, 1);
}

TEST(CheckTest, IsOneStatement) {
  // Swallowing the else would make this throw.
  bool reached = false;
  // NOLINTBEGIN(readability-braces-around-statements): that there are none is the point
  if (reached)
    UPER_CHECK(false, "not reached");
  else
    reached = true;
  // NOLINTEND(readability-braces-around-statements)
  EXPECT_TRUE(reached);
}

TEST(CheckTest, DebugCheckIsOnInDebugBuildsOnly) {
#ifdef NDEBUG
  EXPECT_NO_THROW(UPER_DCHECK(false, "off"));
#else
  EXPECT_THROW(UPER_DCHECK(false, "on"), Error);
  EXPECT_NO_THROW(UPER_DCHECK(true, "holds"));
#endif
}

TEST(ErrorTest, CarriesKindAndMessage) {
  const Error error(ErrorKind::kMissingData, "no such run");
  EXPECT_EQ(error.kind(), ErrorKind::kMissingData);
  EXPECT_STREQ(error.what(), "no such run");
}

}  // namespace
}  // namespace uper
