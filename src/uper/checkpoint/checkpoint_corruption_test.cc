// Damage on the disk: the store detects every change of a file that a checkpoint needs, uses the
// older checkpoint if it is whole, and reports it.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "uper/base/files/files_for_tests.h"
#include "uper/base/random.h"
#include "uper/checkpoint/checkpoint_for_tests.h"
#include "uper/checkpoint/checkpoint_store.h"
#include "uper/checkpoint/checkpoint_verify.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"

namespace uper::checkpoint {
namespace {

class CheckpointCorruptionTest : public testing::Test {
 protected:
  CheckpointCorruptionTest() {
    SaveExamples(disk_, 5);
    for (const Manifest& manifest : InspectCheckpoints(kExampleFolder, disk_)) {
      auto& needed = needed_[static_cast<int>(manifest.number)];
      needed.insert(Path(ManifestName(manifest.number)));
      for (const ManifestFile& file : manifest.Files()) needed.insert(Path(file.name));
    }
  }

  static std::string Path(const std::string& name) {
    return (std::filesystem::path(kExampleFolder) / name).string();
  }

  // Loads after damage to these files and checks that the right checkpoint loads.
  void ExpectDetected(FaultFileSystem& files, const std::vector<std::string>& damaged,
                      const std::string& where) {
    EXPECT_FALSE(VerifyCheckpoints(kExampleFolder, files).good()) << where;
    const auto hurts = [&](int step) {
      return std::any_of(damaged.begin(), damaged.end(),
                         [&](const std::string& path) { return needed_.at(step).contains(path); });
    };
    const int expected = !hurts(5) ? 5 : !hurts(4) ? 4 : 0;
    try {
      const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
      ASSERT_TRUE(result.checkpoint) << where;
      EXPECT_EQ(StepOf(*result.checkpoint), expected) << where;
      EXPECT_TRUE(IsExample(*result.checkpoint, expected)) << where;
      EXPECT_EQ(result.notes.empty(), expected == 5) << where;
    } catch (const Error& error) {
      EXPECT_EQ(expected, 0) << where << ": " << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
      const std::string name = std::filesystem::path(damaged.front()).filename();
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
    ++detections_;
  }

  FaultFileSystem disk_;
  std::map<int, std::set<std::string>> needed_;  // files of the checkpoint of a step
  std::size_t detections_ = 0;
};

TEST_F(CheckpointCorruptionTest, BothCheckpointsShareSomeFilesAndNotOthers) {
  ASSERT_EQ(needed_.size(), 2u);
  std::vector<std::string> shared;
  std::set_intersection(needed_[4].begin(), needed_[4].end(), needed_[5].begin(), needed_[5].end(),
                        std::back_inserter(shared));
  EXPECT_GE(shared.size(), 4u);
  EXPECT_GE(needed_[5].size(), shared.size() + 5);
  EXPECT_EQ(disk_.Paths().size(), needed_[4].size() + needed_[5].size() - shared.size() + 1);
}

TEST_F(CheckpointCorruptionTest, FlippedBitsAreFound) {
  RandomStream random(1, "flips");
  const std::vector<std::string> paths = disk_.Paths();
  constexpr int kFlips = 10'000 / kStride;
  for (int i = 0; i < kFlips; ++i) {
    const std::string& path = paths[random.UniformInt(paths.size())];
    std::vector<std::byte>& content = disk_.Content(path);
    const std::size_t at = random.UniformInt(content.size());
    const auto change = static_cast<std::byte>(1 + random.UniformInt(255));
    content[at] ^= change;
    ExpectDetected(disk_, {path}, path + " byte " + std::to_string(at));
    content[at] ^= change;
  }
  EXPECT_EQ(detections_, static_cast<std::size_t>(kFlips));
  EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, disk_).good());
}

TEST_F(CheckpointCorruptionTest, TruncationAndGrowthAreFound) {
  for (const std::string& path : disk_.Paths()) {
    std::vector<std::byte>& content = disk_.Content(path);
    const std::vector<std::byte> whole = content;
    const std::size_t step = std::max<std::size_t>(1, whole.size() / 60);
    for (std::size_t length = 0; length < whole.size(); length += step) {
      content.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      ExpectDetected(disk_, {path}, path + " cut to " + std::to_string(length));
    }
    for (const std::size_t more : {std::size_t{1}, std::size_t{4096}}) {
      content = whole;
      content.resize(whole.size() + more);
      ExpectDetected(disk_, {path}, path + " longer");
    }
    content = whole;
  }
  RecordProperty("detections", static_cast<int>(detections_));
}

TEST_F(CheckpointCorruptionTest, MissingFilesAreFound) {
  for (const std::string& path : disk_.Paths()) {
    FaultFileSystem files = disk_.Clone();
    files.Erase(path);
    const std::string name = std::filesystem::path(path).filename();
    if (name == kMarkerName) continue;  // only records that manifests must exist
    if (name == ManifestName(5)) {
      // The newest manifest itself. Manifest 4 names manifest 3, which only a newer save removes.
      EXPECT_FALSE(VerifyCheckpoints(kExampleFolder, files).good());
      const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
      EXPECT_TRUE(IsExample(*result.checkpoint, 4));
      EXPECT_EQ(result.notes.size(), 2u);
    } else if (name == ManifestName(4)) {
      EXPECT_FALSE(VerifyCheckpoints(kExampleFolder, files).good());
      const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
      EXPECT_TRUE(IsExample(*result.checkpoint, 5));
      EXPECT_EQ(result.notes.size(), 1u);
    } else {
      ExpectDetected(files, {path}, path + " missing");
    }
  }
}

TEST_F(CheckpointCorruptionTest, SwappedFilesAreFound) {
  const std::vector<std::string> paths = disk_.Paths();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t j = i + 1; j < paths.size(); ++j) {
      disk_.Swap(paths[i], paths[j]);
      if (disk_.Content(paths[i]) != disk_.Content(paths[j])) {
        EXPECT_FALSE(VerifyCheckpoints(kExampleFolder, disk_).good()) << paths[i] << paths[j];
        try {
          const LoadResult result = LoadNewestCheckpoint(kExampleFolder, disk_);
          ASSERT_TRUE(result.checkpoint);
          EXPECT_TRUE(IsExample(*result.checkpoint, StepOf(*result.checkpoint)));
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
        }
        ++detections_;
      }
      disk_.Swap(paths[i], paths[j]);
    }
  }
  EXPECT_GE(detections_, 100u);
  RecordProperty("detections", static_cast<int>(detections_));
}

TEST_F(CheckpointCorruptionTest, LostManifestsAreNotANewRun) {
  disk_.Erase(Path(ManifestName(4)));
  disk_.Erase(Path(ManifestName(5)));
  const Thrown thrown = Catch([&] { LoadNewestCheckpoint(kExampleFolder, disk_); });
  EXPECT_EQ(thrown.kind, ErrorKind::kCorrupt);
  EXPECT_TRUE(thrown.Says("every manifest is missing"));
  EXPECT_FALSE(VerifyCheckpoints(kExampleFolder, disk_).good());
}

// Training continues from the older checkpoint, and the next save replaces the damaged one.
TEST_F(CheckpointCorruptionTest, TheNextSaveReplacesTheDamagedOne) {
  disk_.Content(Path("state-00000005.json"))[0] ^= std::byte{1};
  CheckpointStore store(kExampleFolder, kExampleOptions, disk_);
  const LoadResult result = store.Load();
  EXPECT_EQ(StepOf(*result.checkpoint), 4);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("state-00000005.json"), std::string::npos) << result.notes[0];
  const SaveOutcome outcome = store.Save(ExampleCheckpoint(5).content);
  EXPECT_TRUE(outcome.saved);
  EXPECT_EQ(outcome.number, 6u);  // numbers are not used twice
  EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, disk_).good());
  const std::vector<Manifest> manifests = InspectCheckpoints(kExampleFolder, disk_);
  ASSERT_EQ(manifests.size(), 2u);
  EXPECT_EQ(manifests[0].number, 6u);
  EXPECT_EQ(manifests[1].number, 4u);
}

}  // namespace
}  // namespace uper::checkpoint
