#pragma once

// Shared parts of this folder's tests.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "uper/base/error_for_tests.h"

namespace uper {

// Sanitizers make each case ten times as slow, so tests with many cases take only every kStride-th.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kStride = 10;
#else
inline constexpr int kStride = 1;
#endif

inline std::string FileContent(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void PutFile(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// A test with a folder of its own, removed at the end.
class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("uper_train_" + std::string(info->name()) + "." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

}  // namespace uper
