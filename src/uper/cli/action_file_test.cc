#include "uper/cli/action_file.h"

#include <gtest/gtest.h>

#include "uper/base/error_for_tests.h"

namespace uper::cli {
namespace {

std::string RefusalOf(std::string_view text, int actions = 6) {
  return uper::Refusal([&] { ParseActions(text, actions, "file"); });
}

TEST(ActionFileTest, OneIndexALine) {
  EXPECT_EQ(ParseActions("0\n5\n3\n", 6, "file"), (std::vector<int>{0, 5, 3}));
  EXPECT_EQ(ParseActions("0\n5", 6, "file"), (std::vector<int>{0, 5})) << "no last line end";
  EXPECT_EQ(ParseActions("1\r\n2\r\n", 6, "file"), (std::vector<int>{1, 2}));
}

TEST(ActionFileTest, WhatIsNoActionIsRefusedWithLineAndRange) {
  for (const char* line : {"6", "-1", "x", "", " 1", "1 ", "1.0", "1 2", "+1", "# no", "0x1",
                           "99999999999999999999"}) {
    const std::string message = RefusalOf("0\n1\n" + std::string(line) + "\n2\n");
    EXPECT_NE(message.find("file, line 3"), std::string::npos) << message;
    EXPECT_NE(message.find("from 0 to 5"), std::string::npos) << message;
  }
  EXPECT_EQ(RefusalOf("5\n"), "accepted");
  EXPECT_NE(RefusalOf("5\n", 5), "accepted");
}

TEST(ActionFileTest, OddBytesDoNotReachTheTerminal) {
  EXPECT_NE(RefusalOf("\x1b[2J\n").find("'?[2J'"), std::string::npos);
  EXPECT_LT(RefusalOf(std::string(100000, 'x')).size(), 200);
}

TEST(ActionFileTest, NoActionsAtAll) {
  EXPECT_NE(RefusalOf("").find("holds no actions"), std::string::npos);
}

TEST(ActionFileTest, MissingFilesAndFolders) {
  const auto kind = [](const char* path) { return Catch([&] { ReadActionFile(path, 6); }).kind; };
  EXPECT_EQ(kind("/nonexistent/actions"), ErrorKind::kMissingData);
  EXPECT_EQ(kind("/"), ErrorKind::kUsage);
}

}  // namespace
}  // namespace uper::cli
