#include "uper/checkpoint/checkpoint_writer.h"

#include <gtest/gtest.h>

#include "uper/checkpoint/checkpoint_for_tests.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"

namespace uper::checkpoint {
namespace {

// Stands for training: supplies the example of a chosen step and counts the reads of its records.
class CheckpointWriterTest : public testing::Test {
 protected:
  CheckpointWriterTest() { writer_.Load(); }

  void SetStep(int step) { example_ = std::make_unique<ExampleCheckpoint>(step); }

  std::map<std::string, RecordStream> CountedStreams() {
    auto streams = example_->content.streams;
    for (auto& [name, stream] : streams) {
      stream.read = [this, read = stream.read](std::uint64_t begin, std::uint64_t end,
                                               std::span<std::byte> out) {
        records_read_ += end - begin;
        read(begin, end, out);
      };
    }
    return streams;
  }

  CheckpointContent CountedContent() {
    CheckpointContent content = example_->content;
    content.streams = CountedStreams();
    return content;
  }

  // Steps until the writer has no report and no work left.
  void WriteEverythingAhead() {
    for (int i = 0; i < 2000; ++i) {
      EXPECT_FALSE(writer_.Advance());
      EXPECT_FALSE(writer_.Finish());
    }
  }

  // The newest checkpoint on the disk is that of this step, to the last byte.
  bool NewestIs(int step) {
    FaultFileSystem disk = files_.Clone();
    const LoadResult loaded = CheckpointStore(kExampleFolder, kExampleOptions, disk).Load();
    return loaded.checkpoint && IsExample(*loaded.checkpoint, step);
  }

  FaultFileSystem files_;
  std::unique_ptr<ExampleCheckpoint> example_ = std::make_unique<ExampleCheckpoint>(1);
  std::uint64_t records_read_ = 0;
  CheckpointWriter writer_{CheckpointStore(kExampleFolder, kExampleOptions, files_),
                           {.content = [this] { return CountedContent(); },
                            .streams = [this] { return CountedStreams(); }}};
};

TEST_F(CheckpointWriterTest, SavesAndReports) {
  for (int step = 1; step <= 4; ++step) {
    SetStep(step);
    writer_.Request();
    EXPECT_TRUE(writer_.requested());
    const std::optional<SaveReport> report = writer_.Finish();
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->outcome.saved);
    EXPECT_EQ(report->info.at("frames"), 1000 * step);
    EXPECT_FALSE(writer_.requested());
    EXPECT_TRUE(NewestIs(step));
  }
  EXPECT_EQ(writer_.times().saves, 4);
  EXPECT_GT(writer_.times().bytes_written, 0);
}

TEST_F(CheckpointWriterTest, ASaveCopiesOnlyWhatIsNotCompleteYet) {
  SetStep(9);  // 180 transitions and 187 frames, segments of 16; the newest 50 and 70 are alive
  WriteEverythingAhead();
  EXPECT_EQ(records_read_, (176 - 130) + (176 - 117));
  records_read_ = 0;
  writer_.Request();
  ASSERT_TRUE(writer_.Finish()->outcome.saved);
  EXPECT_EQ(records_read_, (180 - 176) + (187 - 176));
  EXPECT_TRUE(NewestIs(9));
}

TEST_F(CheckpointWriterTest, WhatTrainingDoesMeanwhileIsNotSaved) {
  SetStep(2);
  writer_.Request();
  while (writer_.requested()) writer_.Advance();
  SetStep(3);  // the example of step 2 is gone
  ASSERT_TRUE(writer_.Finish()->outcome.saved);
  EXPECT_TRUE(NewestIs(2));
}

TEST_F(CheckpointWriterTest, AFullDiskIsReportedOnceASaveAndLeavesTheOldOne) {
  SetStep(1);
  writer_.Request();
  ASSERT_TRUE(writer_.Finish()->outcome.saved);
  SetStep(5);
  files_.FailFrom(0, ENOSPC);
  WriteEverythingAhead();  // fails, but without a report until a save is requested
  for (int i = 0; i < 2; ++i) {
    writer_.Request();
    const std::optional<SaveReport> report = writer_.Finish();
    ASSERT_TRUE(report);
    EXPECT_FALSE(report->outcome.saved);
    EXPECT_TRUE(report->outcome.disk_full);
  }
  EXPECT_TRUE(NewestIs(1));
  files_.ClearFaults();
  writer_.Request();
  EXPECT_TRUE(writer_.Finish()->outcome.saved);
  EXPECT_TRUE(NewestIs(5));
}

TEST_F(CheckpointWriterTest, TooLittleSpaceIsNoticedBeforeAnythingIsWritten) {
  SetStep(1);
  writer_.Request();
  ASSERT_TRUE(writer_.Finish()->outcome.saved);
  const std::vector<std::string> before = files_.Paths();
  SetStep(2);
  files_.free_bytes = 100;
  writer_.Request();
  const std::optional<SaveReport> report = writer_.Finish();
  EXPECT_FALSE(report->outcome.saved);
  EXPECT_TRUE(report->outcome.disk_full);
  EXPECT_NE(report->outcome.problem.find("has 0 MiB left"), std::string::npos)
      << report->outcome.problem;
  EXPECT_EQ(files_.Paths(), before);
}

TEST_F(CheckpointWriterTest, WhatMustBeDurableOutsideComesFirst) {
  std::vector<std::string> paths;
  CheckpointWriter writer(CheckpointStore(kExampleFolder, kExampleOptions, files_),
                          {.content =
                               [&] {
                                 CheckpointContent content = CountedContent();
                                 content.sync_outside = [&] {
                                   paths = files_.Paths();
                                   return std::string("the log is lost");
                                 };
                                 return content;
                               },
                           .streams = [this] { return CountedStreams(); }});
  writer.Load();
  writer.Request();
  const std::optional<SaveReport> report = writer.Finish();
  EXPECT_TRUE(report->outcome.saved);
  EXPECT_EQ(report->outcome.problem, "the log is lost");
  for (const std::string& path : paths) EXPECT_EQ(path.find("manifest"), std::string::npos);
}

}  // namespace
}  // namespace uper::checkpoint
