#include "uper/envs/atari/rom_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "uper/base/error.h"

namespace uper::atari {
namespace {

class RomFileTest : public testing::Test {
 protected:
  RomFileTest() : folder_(testing::TempDir() + "/uper_rom_file_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~RomFileTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& content) {
    std::ofstream(folder_ / "abc.bin", std::ios::binary) << content;
  }
  // The message; empty when the ROM is right.
  std::string Problem() {
    try {
      EXPECT_EQ(CheckedRom(folder_, kGame), folder_ / "abc.bin");
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMissingData);
      return error.what();
    }
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  // The digest of "abc".
  static constexpr Game kGame = {"abc", "900150983cd24fb0d6963f7d28e17f72"};
  const std::filesystem::path folder_;
};

TEST_F(RomFileTest, RightContentIsAccepted) {
  Write("abc");
  EXPECT_EQ(Problem(), "");
}

TEST_F(RomFileTest, EveryProblemNamesGamePathAndDigests) {
  const auto expect = [&](const std::string& what) {
    const std::string problem = Problem();
    for (const std::string& part : {std::string("atari/abc"), (folder_ / "abc.bin").string(),
                                    std::string("900150983cd24fb0d6963f7d28e17f72"),
                                    std::string("environment.rom_dir"), what}) {
      EXPECT_TRUE(Has(problem, part)) << part << " not in: " << problem;
    }
  };
  expect("is missing");
  Write("");
  expect("is empty: found MD5 d41d8cd98f00b204e9800998ecf8427e");
  Write("a");
  expect("(1 bytes): found MD5 0cc175b9c0f1b6a831c399e269772661");
  Write("abd");
  expect("(3 bytes): found MD5");
  Write(std::string((1 << 20) + 1, 'x'));
  expect("(1048577 bytes): found MD5");
  std::filesystem::resize_file(folder_ / "abc.bin", (1 << 26) + 1);
  expect("larger than any cartridge");
  std::filesystem::remove(folder_ / "abc.bin");
  std::filesystem::create_directory(folder_ / "abc.bin");
  expect("is not a file");
}

TEST(GamesTest, FiftySevenInOrderWithDigests) {
  EXPECT_EQ(kGames.size(), 57u);
  for (std::size_t i = 0; i < kGames.size(); ++i) {
    EXPECT_EQ(kGames[i].rom_md5.size(), 32u) << kGames[i].name;
    EXPECT_TRUE(i == 0 || kGames[i - 1].name < kGames[i].name) << kGames[i].name;
    EXPECT_EQ(FindGame(kGames[i].name), &kGames[i]);
  }
  EXPECT_EQ(FindGame("chess"), nullptr);
}

}  // namespace
}  // namespace uper::atari
