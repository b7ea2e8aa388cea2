#include "uper/base/files/csv_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

TEST(NumberTextTest, IsTheShortestThatReadsBack) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(-2.5), "-2.5");
  EXPECT_EQ(NumberText(1e300), "1e+300");
  EXPECT_EQ(NumberText(1.0 / 3), "0.3333333333333333");
}

TEST(NumberTextTest, SpecialValuesHaveNames) {
  EXPECT_EQ(NumberText(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(NumberTextTest, EveryNumberReadsBack) {
  RandomStream random(1, "csv");
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random.NextUint64());
    if (!std::isfinite(value)) continue;
    const std::string text = NumberText(value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value)) << text;
  }
}

class CsvWriterTest : public testing::Test {
 protected:
  CsvWriterTest()
      : path_(std::filesystem::temp_directory_path() /
              ("uper_csv_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "." +
               std::to_string(getpid()))) {}
  ~CsvWriterTest() override { std::filesystem::remove(path_); }

  std::string Content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::filesystem::path path_;
};

TEST_F(CsvWriterTest, WritesHeaderAndRows) {
  CsvWriter csv(path_, {"scheme", "seed", "mse"});
  csv.Row("td", 3, 0.25);
  csv.Row(std::string("uper"), std::numeric_limits<std::int64_t>::max(), 1e-7);
  csv.Row(std::string_view(""), std::size_t{0}, -0.5f);
  EXPECT_FALSE(std::filesystem::exists(path_));
  csv.Commit();
  EXPECT_EQ(Content(),
            "scheme,seed,mse\n"
            "td,3,0.25\n"
            "uper,9223372036854775807,1e-07\n"
            ",0,-0.5\n");
}

TEST_F(CsvWriterTest, OneColumn) {
  CsvWriter csv(path_, {"x"});
  csv.Row(1);
  csv.Row(2);
  csv.Commit();
  EXPECT_EQ(Content(), "x\n1\n2\n");
}

TEST_F(CsvWriterTest, WithoutCommitThereIsNoFile) {
  {
    CsvWriter(path_, {"a"}).Row(1);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(CsvWriterTest, RowsMustHaveOneFieldAColumn) {
  CsvWriter csv(path_, {"a", "b"});
  EXPECT_THROW(csv.Row(1), Error);
  EXPECT_THROW(csv.Row(1, 2, 3), Error);
  csv.Row(1, 2);
  csv.Commit();
  EXPECT_EQ(Content(), "a,b\n1,2\n");
}

}  // namespace
}  // namespace uper
