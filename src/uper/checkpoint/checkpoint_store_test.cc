#include "uper/checkpoint/checkpoint_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "uper/base/files/files_for_tests.h"
#include "uper/checkpoint/checkpoint_for_tests.h"
#include "uper/checkpoint/checkpoint_verify.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"

namespace uper::checkpoint {
namespace {

std::vector<std::string> NamesWith(const FaultFileSystem& files, const std::string& part) {
  std::vector<std::string> names = files.Paths();
  std::erase_if(names,
                [&](const std::string& name) { return name.find(part) == std::string::npos; });
  return names;
}

TEST(CheckpointStoreTest, NothingIsLoadedWhereNothingWasSaved) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  const LoadResult result = store.Load();
  EXPECT_FALSE(result.checkpoint);
  EXPECT_TRUE(result.notes.empty());
  EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, files).files.empty());
}

TEST(CheckpointStoreTest, WhatWasSavedIsLoadedInAnyProcess) {
  FaultFileSystem files;
  for (int step = 1; step <= 12; ++step) {
    CheckpointStore store(kExampleFolder, kExampleOptions, files);
    store.Load();
    const SaveOutcome outcome = store.Save(ExampleCheckpoint(step).content);
    EXPECT_TRUE(outcome.saved) << outcome.problem;
    EXPECT_EQ(outcome.number, static_cast<std::uint64_t>(step));
    EXPECT_TRUE(outcome.problem.empty());
    const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
    ASSERT_TRUE(result.checkpoint);
    EXPECT_TRUE(IsExample(*result.checkpoint, step));
    EXPECT_TRUE(result.notes.empty());
    EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, files).good());
  }
  EXPECT_EQ(files.open_handles(), 0u);
}

TEST(CheckpointStoreTest, OneStoreSavesManyTimes) {
  FaultFileSystem files;
  SaveExamples(files, 9);
  const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
  ASSERT_TRUE(result.checkpoint);
  EXPECT_TRUE(IsExample(*result.checkpoint, 9));
  // The store keeps two checkpoints and only the files that they need.
  EXPECT_EQ(NamesWith(files, "manifest-").size(), 2u);
  EXPECT_EQ(NamesWith(files, "state-").size(), 2u);
  for (const FileReport& report : VerifyCheckpoints(kExampleFolder, files).files) {
    EXPECT_EQ(report.state, FileState::kGood) << report.name << " " << report.reason;
  }
}

TEST(CheckpointStoreTest, ASaveWritesOnlyWhatIsNew) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  store.Save(ExampleCheckpoint(4).content);
  // Step 4: transitions [30, 80), frames [17, 87). Step 5: [50, 100) and [37, 107). Segments of 16.
  const PreparedSave save = store.Prepare(ExampleCheckpoint(5).content);
  const auto ranges = [](const PreparedSave::Stream& stream) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> fresh;
    for (const PreparedSave::Segment& segment : stream.fresh) {
      fresh.emplace_back(segment.begin, segment.end);
    }
    return fresh;
  };
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(ranges(save.streams.at("transitions")), (Ranges{{80, 96}, {96, 100}}));
  EXPECT_EQ(save.streams.at("transitions").stored.size(), 2u);  // [48, 64) and [64, 80)
  EXPECT_EQ(ranges(save.streams.at("frames")), (Ranges{{80, 96}, {96, 107}}));
  EXPECT_EQ(save.streams.at("frames").stored.size(), 3u);
  EXPECT_TRUE(store.Publish(save).saved);
  const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
  EXPECT_TRUE(IsExample(*result.checkpoint, 5));
}

TEST(CheckpointStoreTest, SegmentsHaveABoundedSize) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, {.segment_bytes = 100, .segment_records = 1000}, files);
  store.Load();
  // 7 records of 13 bytes fit, 3 of 29; grids are powers of two.
  const PreparedSave save = store.Prepare(ExampleCheckpoint(2).content);
  EXPECT_EQ(save.streams.at("transitions").fresh.front().raw.size(), 4 * 13u);
  EXPECT_EQ(save.streams.at("frames").fresh.front().raw.size(), 2 * 29u);
  EXPECT_TRUE(store.Publish(save).saved);
  EXPECT_TRUE(IsExample(*LoadNewestCheckpoint(kExampleFolder, files).checkpoint, 2));
}

TEST(CheckpointStoreTest, SegmentsWrittenAheadAreUsedByTheNextSave) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  store.Save(ExampleCheckpoint(1).content);
  const ExampleCheckpoint third(3);
  const SaveOutcome ahead = store.WriteAhead(third.content.streams);
  EXPECT_TRUE(ahead.saved);
  EXPECT_GT(ahead.bytes_written, 0u);
  EXPECT_EQ(store.WriteAhead(third.content.streams).bytes_written, 0u);
  const PreparedSave save = store.Prepare(third.content);
  ASSERT_EQ(save.streams.at("transitions").fresh.size(), 1u);  // the unfinished one
  EXPECT_EQ(save.streams.at("transitions").fresh.front().begin, 48u);
  EXPECT_TRUE(store.Publish(save).saved);
  EXPECT_TRUE(IsExample(*LoadNewestCheckpoint(kExampleFolder, files).checkpoint, 3));
  EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, files).good());
}

// Saves are rarer than the turnover of the memory: segments written ahead are removed once their
// records have left it, and the segments of a checkpoint stay.
TEST(CheckpointStoreTest, DeadSegmentsWrittenAheadAreRemoved) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  store.Save(ExampleCheckpoint(1).content);
  store.Save(ExampleCheckpoint(2).content);
  const std::vector<std::string> saved = files.Paths();
  for (int step = 3; step <= 60; ++step) {
    const ExampleCheckpoint example(step);
    ASSERT_TRUE(store.WriteAhead(example.content.streams).saved);
    for (const std::string& path : saved) EXPECT_EQ(NamesWith(files, path).size(), 1u) << path;
    // Live records fill at most 50 / 16 and 70 / 16 segments and touch two more; one more of each
    // may have died since the last one was written.
    EXPECT_LE(files.Paths().size(), saved.size() + 4 + 1 + 6 + 1) << step;
  }
  for (const int step : {1, 2}) {
    const Manifest manifest = InspectCheckpoints(kExampleFolder, files).at(2 - step);
    EXPECT_TRUE(IsExample(LoadCheckpoint(files, kExampleFolder, manifest), step));
  }
  const PreparedSave save = store.Prepare(ExampleCheckpoint(60).content);
  for (const auto& [name, stream] : save.streams) {  // no live record was removed
    EXPECT_LE(stream.fresh.size(), 1u) << name;
  }
  EXPECT_TRUE(store.Publish(save).saved);
  EXPECT_TRUE(IsExample(*LoadNewestCheckpoint(kExampleFolder, files).checkpoint, 60));
  EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, files).good());
}

TEST(CheckpointStoreTest, SegmentsOfALostProcessAreNotTrusted) {
  FaultFileSystem files;
  {
    CheckpointStore store(kExampleFolder, kExampleOptions, files);
    store.Load();
    store.Save(ExampleCheckpoint(1).content);
    store.WriteAhead(ExampleCheckpoint(3).content.streams);
  }
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  const LoadResult result = store.Load();
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("not completed"), std::string::npos);
  EXPECT_EQ(store.Prepare(ExampleCheckpoint(3).content).streams.at("transitions").fresh.size(), 3u);
  EXPECT_TRUE(store.Save(ExampleCheckpoint(3).content).saved);
  for (const FileReport& report : VerifyCheckpoints(kExampleFolder, files).files) {
    EXPECT_EQ(report.state, FileState::kGood) << report.name;  // no leftover file is there
  }
}

// A run that is killed again and again before its next save does not fill the disk.
TEST(CheckpointStoreTest, SegmentsOfALostProcessGoBeforeNewOnesAreWritten) {
  FaultFileSystem files;
  SaveExamples(files, 2);
  const std::size_t saved = files.Paths().size();
  std::size_t once = 0;
  for (int kill = 0; kill < 5; ++kill) {
    CheckpointStore store(kExampleFolder, kExampleOptions, files);
    EXPECT_EQ(StepOf(*store.Load().checkpoint), 2);
    EXPECT_EQ(files.Paths().size(), saved + once);  // reading removes nothing
    store.WriteAhead(ExampleCheckpoint(4).content.streams);
    if (kill == 0) once = files.Paths().size() - saved;
    EXPECT_GE(once, 4u);
    EXPECT_EQ(files.Paths().size(), saved + once) << kill;
  }
  EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, files).good());
}

// The files of a damaged checkpoint stay until a new one exists.
TEST(CheckpointStoreTest, FilesOfADamagedCheckpointAreNoLeftovers) {
  FaultFileSystem files;
  SaveExamples(files, 3);
  files.Content(NamesWith(files, "manifest-00000003").at(0)).pop_back();
  const std::vector<std::string> paths = files.Paths();
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  EXPECT_EQ(StepOf(*store.Load().checkpoint), 2);
  store.WriteAhead(ExampleCheckpoint(4).content.streams);
  for (const std::string& path : paths) EXPECT_EQ(NamesWith(files, path).size(), 1u) << path;
}

TEST(CheckpointStoreTest, AStoredSegmentThatVanishedIsWrittenAgain) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  store.Save(ExampleCheckpoint(4).content);
  for (const std::string& name : NamesWith(files, "transitions-000000000064")) files.Erase(name);
  for (const std::string& name : NamesWith(files, "frames-000000000048")) {
    files.Content(name).pop_back();
  }
  EXPECT_TRUE(store.Save(ExampleCheckpoint(5).content).saved);
  EXPECT_TRUE(IsExample(*LoadNewestCheckpoint(kExampleFolder, files).checkpoint, 5));
}

TEST(CheckpointStoreTest, AnEarlierStateCanBeSavedAfterALaterOne) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  store.Save(ExampleCheckpoint(5).content);
  EXPECT_TRUE(store.Save(ExampleCheckpoint(4).content).saved);
  EXPECT_TRUE(IsExample(*LoadNewestCheckpoint(kExampleFolder, files).checkpoint, 4));
}

TEST(CheckpointStoreTest, PublishMayRunOnAnotherThread) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  SaveOutcome outcome;
  PreparedSave save;
  {
    const ExampleCheckpoint example(3);  // gone before the writing starts
    save = store.Prepare(example.content);
  }
  std::thread writer([&] { outcome = store.Publish(save); });
  writer.join();
  EXPECT_TRUE(outcome.saved);
  EXPECT_TRUE(IsExample(*LoadNewestCheckpoint(kExampleFolder, files).checkpoint, 3));
}

TEST(CheckpointStoreTest, MoreOrFewerCanBeKept) {
  for (const std::size_t keep : {std::size_t{1}, std::size_t{3}}) {
    FaultFileSystem files;
    CheckpointStore store(kExampleFolder, {.keep = keep, .segment_records = 16}, files);
    store.Load();
    for (int step = 1; step <= 6; ++step) store.Save(ExampleCheckpoint(step).content);
    EXPECT_EQ(NamesWith(files, "manifest-").size(), keep);
    EXPECT_TRUE(VerifyCheckpoints(kExampleFolder, files).good());
    const std::vector<Manifest> manifests = InspectCheckpoints(kExampleFolder, files);
    ASSERT_EQ(manifests.size(), keep);
    EXPECT_EQ(manifests.front().info.at("frames"), 6000);
    for (const Manifest& manifest : manifests) {
      EXPECT_TRUE(IsExample(LoadCheckpoint(files, kExampleFolder, manifest),
                            static_cast<int>(manifest.number)));
    }
  }
}

TEST(CheckpointStoreTest, FilesOfOthersAreLeftAlone) {
  FaultFileSystem files;
  std::size_t written = 0;
  FileSystem::Handle handle = 0;
  files.Create("checkpoints/notes.txt", &handle);
  files.Write(handle, BytesOfText("mine"), &written);
  files.Close(handle);
  SaveExamples(files, 5);
  EXPECT_EQ(NamesWith(files, "notes.txt").size(), 1u);
  const VerifyReport report = VerifyCheckpoints(kExampleFolder, files);
  EXPECT_TRUE(report.good());
  EXPECT_EQ(
      std::count_if(report.files.begin(), report.files.end(),
                    [](const FileReport& file) { return file.state == FileState::kUnreferenced; }),
      1);
}

TEST(CheckpointStoreTest, StreamHashDependsOnTheLiveRecordsAlone) {
  FaultFileSystem one;
  SaveExamples(one, 6);
  FaultFileSystem other;
  CheckpointStore store(kExampleFolder, {.segment_records = 8}, other);
  store.Load();
  store.Save(ExampleCheckpoint(6).content);
  const LoadResult a = LoadNewestCheckpoint(kExampleFolder, one);
  const LoadResult b = LoadNewestCheckpoint(kExampleFolder, other);
  for (const char* stream : {"transitions", "frames"}) {
    EXPECT_EQ(a.checkpoint->StreamHash(stream), b.checkpoint->StreamHash(stream));
  }
  EXPECT_NE(a.checkpoint->StreamHash("frames"), a.checkpoint->StreamHash("transitions"));
}

TEST(CheckpointStoreTest, PartsThatAreNotThereAreCorruptNotACrash) {
  FaultFileSystem files;
  SaveExamples(files, 1);
  const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
  EXPECT_EQ(Catch([&] { result.checkpoint->Tensors("none"); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(Catch([&] { result.checkpoint->StreamHash("none"); }).kind, ErrorKind::kCorrupt);
}

TEST(CheckpointStoreTest, LoadComesFirst) {
  FaultFileSystem files;
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  EXPECT_EQ(Catch([&] { store.Save(ExampleCheckpoint(1).content); }).kind, ErrorKind::kInternal);
}

class CheckpointFolderTest : public FolderTest {};

TEST_F(CheckpointFolderTest, WorksOnTheRealFileSystem) {
  const auto folder = folder_ / "checkpoints";
  for (int step = 1; step <= 5; ++step) {
    CheckpointStore store(folder, kExampleOptions);
    const LoadResult before = store.Load();
    EXPECT_EQ(before.checkpoint.has_value(), step > 1);
    ASSERT_TRUE(store.Save(ExampleCheckpoint(step).content).saved);
  }
  const LoadResult result = LoadNewestCheckpoint(folder);
  EXPECT_TRUE(IsExample(*result.checkpoint, 5));
  EXPECT_TRUE(VerifyCheckpoints(folder).good());
  // A link in the place of a file is not followed.
  const auto document = folder / "state-00000005.json";
  std::filesystem::rename(document, folder_ / "elsewhere.json");
  std::filesystem::create_symlink(folder_ / "elsewhere.json", document);
  EXPECT_EQ(StepOf(*LoadNewestCheckpoint(folder).checkpoint), 4);
  EXPECT_FALSE(VerifyCheckpoints(folder).good());
}

TEST_F(CheckpointFolderTest, AFolderThatCannotBeWrittenIsReportedNotThrown) {
  CheckpointStore store("/proc/none/checkpoints", kExampleOptions);
  store.Load();
  const SaveOutcome outcome = store.Save(ExampleCheckpoint(1).content);
  EXPECT_FALSE(outcome.saved);
  EXPECT_FALSE(outcome.problem.empty());
  EXPECT_EQ(Catch([&] { outcome.ThrowIfFailed(); }).kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace uper::checkpoint
