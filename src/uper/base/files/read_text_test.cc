#include "uper/base/files/read_text.h"

#include <gtest/gtest.h>

#include "uper/base/files/files_for_tests.h"

namespace uper {
namespace {

class ReadTextTest : public FolderTest {};

TEST_F(ReadTextTest, GivesEveryByte) {
  const std::string text = std::string("a\r\n\0b", 5) + std::string(200'000, 'x');
  PutFile(folder_ / "file", text);
  EXPECT_EQ(ReadText(folder_ / "file"), text);
  PutFile(folder_ / "empty", "");
  EXPECT_EQ(ReadText(folder_ / "empty"), "");
}

TEST_F(ReadTextTest, StopsOneByteBehindTheLimit) {
  PutFile(folder_ / "file", "12345");
  EXPECT_EQ(ReadText(folder_ / "file", 5), "12345");
  EXPECT_EQ(ReadText(folder_ / "file", 3), "1234");
  EXPECT_EQ(ReadText(folder_ / "file", 0), "1");
}

TEST_F(ReadTextTest, GivesNothingForAFolderAndForNoFile) {
  EXPECT_EQ(ReadText(folder_), std::nullopt);
  EXPECT_EQ(ReadText(folder_ / "missing"), std::nullopt);
}

}  // namespace
}  // namespace uper
