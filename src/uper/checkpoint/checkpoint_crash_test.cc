// A save may crash or fail at each of its operations; no failure may cost more than that save.

#include <gtest/gtest.h>

#include <cerrno>
#include <iterator>
#include <string>

#include "uper/checkpoint/checkpoint_for_tests.h"
#include "uper/checkpoint/checkpoint_store.h"
#include "uper/checkpoint/checkpoint_verify.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"

namespace uper::checkpoint {
namespace {

constexpr CrashKind kCrashes[] = {CrashKind::kProcess,          CrashKind::kTornWrite,
                                  CrashKind::kLoseData,         CrashKind::kLoseNames,
                                  CrashKind::kLoseDataAndNames, CrashKind::kReordered};

// Continues from the content of the disk and saves `step`. Crashes if the file system is set to
// crash.
SaveOutcome SaveStep(FaultFileSystem& files, int step) {
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  store.WriteAhead(ExampleCheckpoint(step).content.streams);
  return store.Save(ExampleCheckpoint(step).content);
}

// The step of the checkpoint that loads, or 0 if there is none. The test fails unless the
// checkpoint is the whole example of that step.
int LoadedStep(FaultFileSystem& files, const std::string& where) {
  const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
  if (!result.checkpoint) return 0;
  const int step = StepOf(*result.checkpoint);
  EXPECT_TRUE(IsExample(*result.checkpoint, step)) << where;
  return step;
}

void ExpectGood(FaultFileSystem& files, const std::string& where) {
  for (const FileReport& report : VerifyCheckpoints(kExampleFolder, files).files) {
    EXPECT_TRUE(report.state == FileState::kGood || report.state == FileState::kUnreferenced)
        << where << ": " << report.name << " " << report.reason;
  }
}

std::size_t OperationsOfStep(const FaultFileSystem& disk, int step) {
  FaultFileSystem files = disk.Clone();
  EXPECT_TRUE(SaveStep(files, step).saved);
  return files.operations();
}

// Crashes at every operation of saving `step`, in every way, then restarts and continues.
std::size_t CrashEverywhere(const FaultFileSystem& disk, int step) {
  const std::size_t operations = OperationsOfStep(disk, step);
  std::size_t states = 0;
  for (std::size_t at = 0; at < operations; ++at) {
    for (const CrashKind kind : kCrashes) {
      const std::string where =
          "operation " + std::to_string(at) + " kind " + std::to_string(static_cast<int>(kind));
      FaultFileSystem files = disk.Clone();
      files.CrashAt(at, kind);
      EXPECT_THROW(SaveStep(files, step), SimulatedCrash) << where;
      files.Restart();
      const int loaded = LoadedStep(files, where);
      EXPECT_TRUE(loaded == step || loaded == step - 1) << where << " loaded " << loaded;
      ExpectGood(files, where);
      EXPECT_TRUE(SaveStep(files, loaded + 1).saved) << where;
      EXPECT_EQ(LoadedStep(files, where), loaded + 1) << where;
      ExpectGood(files, where);
      ++states;
    }
  }
  return states;
}

TEST(CheckpointCrashTest, NoCrashOfTheFirstSaveIsUnrecoverable) {
  const std::size_t states = CrashEverywhere(FaultFileSystem(), 1);
  EXPECT_GE(states, 100u);
  RecordProperty("states", static_cast<int>(states));
}

TEST(CheckpointCrashTest, NoCrashOfALaterSaveIsUnrecoverable) {
  FaultFileSystem disk;
  SaveExamples(disk, 4);
  disk.Restart();
  const std::size_t states = CrashEverywhere(disk, 5);
  EXPECT_GE(states, 200u);
  RecordProperty("states", static_cast<int>(states));
}

// The second crash follows a restart from the disk that the first one left.
TEST(CheckpointCrashTest, CrashesMayFollowOneAnother) {
  FaultFileSystem disk;
  SaveExamples(disk, 3);
  disk.Restart();
  const std::size_t operations = OperationsOfStep(disk, 4);
  int states = 0;
  for (std::size_t first = 0; first < operations; first += 3) {
    FaultFileSystem once = disk.Clone();
    once.CrashAt(first, kCrashes[first % std::size(kCrashes)]);
    EXPECT_THROW(SaveStep(once, 4), SimulatedCrash);
    once.Restart();
    const int step = LoadedStep(once, "first crash") + 1;
    const std::size_t rest = OperationsOfStep(once, step);
    for (std::size_t second = 0; second < rest; second += 2) {
      FaultFileSystem twice = once.Clone();
      twice.CrashAt(second, kCrashes[second % std::size(kCrashes)]);
      EXPECT_THROW(SaveStep(twice, step), SimulatedCrash);
      twice.Restart();
      const std::string where = std::to_string(first) + " then " + std::to_string(second);
      EXPECT_GE(LoadedStep(twice, where), step - 1) << where;
      ExpectGood(twice, where);
      ++states;
    }
  }
  RecordProperty("states", states);
}

// Records come and go between two saves: segments written ahead are removed again.
SaveOutcome WriteAheadAndSave(FaultFileSystem& files, int from, int to) {
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  for (int step = from; step < to; ++step) {
    store.WriteAhead(ExampleCheckpoint(step).content.streams);
  }
  return store.Save(ExampleCheckpoint(to).content);
}

TEST(CheckpointCrashTest, NoCrashBetweenRareSavesIsUnrecoverable) {
  FaultFileSystem disk;
  SaveExamples(disk, 2);
  disk.Restart();
  FaultFileSystem counter = disk.Clone();
  ASSERT_TRUE(WriteAheadAndSave(counter, 3, 8).saved);
  for (std::size_t at = 0; at < counter.operations(); ++at) {
    for (const CrashKind kind : kCrashes) {
      const std::string where =
          "operation " + std::to_string(at) + " kind " + std::to_string(static_cast<int>(kind));
      FaultFileSystem files = disk.Clone();
      files.CrashAt(at, kind);
      EXPECT_THROW(WriteAheadAndSave(files, 3, 8), SimulatedCrash) << where;
      files.Restart();
      const int loaded = LoadedStep(files, where);
      EXPECT_TRUE(loaded == 2 || loaded == 8) << where << " loaded " << loaded;
      ExpectGood(files, where);
      EXPECT_TRUE(WriteAheadAndSave(files, loaded + 1, loaded + 3).saved) << where;
      EXPECT_EQ(LoadedStep(files, where), loaded + 3) << where;
      ExpectGood(files, where);
    }
  }
  RecordProperty("operations", static_cast<int>(counter.operations()));
}

// An operation that fails between two saves costs nothing that a checkpoint needs.
TEST(CheckpointCrashTest, NoFailureBetweenRareSavesHarmsACheckpoint) {
  FaultFileSystem disk;
  SaveExamples(disk, 2);
  disk.Restart();
  FaultFileSystem counter = disk.Clone();
  ASSERT_TRUE(WriteAheadAndSave(counter, 3, 9).saved);
  for (const int error : {EIO, ENOSPC, FaultFileSystem::kShortWrite}) {
    for (std::size_t at = 0; at < counter.operations(); ++at) {
      const std::string where = std::to_string(error) + " at " + std::to_string(at);
      FaultFileSystem files = disk.Clone();
      CheckpointStore store(kExampleFolder, kExampleOptions, files);
      store.Load();
      files.FailAt(files.operations() + at, error);
      for (int step = 3; step < 9; ++step) {
        store.WriteAhead(ExampleCheckpoint(step).content.streams);
      }
      files.ClearFaults();
      EXPECT_EQ(LoadedStep(files, where), 2) << where;
      EXPECT_TRUE(store.Save(ExampleCheckpoint(9).content).saved) << where;
      EXPECT_EQ(LoadedStep(files, where), 9) << where;
      ExpectGood(files, where);
    }
  }
}

TEST(CheckpointCrashTest, EveryFailingOperationLeavesAGoodCheckpoint) {
  FaultFileSystem disk;
  SaveExamples(disk, 4);
  disk.Restart();
  std::size_t cases = 0;
  for (const int error : {EIO, ENOSPC, EDQUOT, EINTR, FaultFileSystem::kShortWrite}) {
    FaultFileSystem counter = disk.Clone();
    CheckpointStore first(kExampleFolder, kExampleOptions, counter);
    first.Load();
    const std::size_t loading = counter.operations();
    first.Save(ExampleCheckpoint(5).content);
    for (std::size_t at = loading; at < counter.operations(); ++at, ++cases) {
      const std::string where = std::to_string(error) + " at " + std::to_string(at);
      FaultFileSystem files = disk.Clone();
      CheckpointStore store(kExampleFolder, kExampleOptions, files);
      store.Load();
      files.FailAt(at, error);
      const SaveOutcome outcome = store.Save(ExampleCheckpoint(5).content);
      EXPECT_EQ(outcome.saved, LoadedStep(files, where) == 5) << where;
      EXPECT_EQ(files.open_handles(), 0u) << where;
      const bool harmless = error == EINTR || error == FaultFileSystem::kShortWrite;
      if (!outcome.saved) {
        EXPECT_FALSE(harmless && error != FaultFileSystem::kShortWrite) << where;
        EXPECT_FALSE(outcome.problem.empty()) << where;
        EXPECT_EQ(outcome.disk_full, error == ENOSPC || error == EDQUOT) << where;
        EXPECT_EQ(files.Paths(), disk.Paths()) << where;  // no file of it is left
      }
      ExpectGood(files, where);
      // The same store can save again.
      EXPECT_TRUE(store.Save(ExampleCheckpoint(6).content).saved) << where;
      EXPECT_EQ(LoadedStep(files, where), 6) << where;
      ExpectGood(files, where);
    }
  }
  RecordProperty("cases", static_cast<int>(cases));
  EXPECT_GE(cases, 150u);
}

TEST(CheckpointCrashTest, AFullDiskKeepsTheOldCheckpointAndTheSpace) {
  FaultFileSystem disk;
  SaveExamples(disk, 4);
  disk.Restart();
  for (std::size_t from = 0; from < OperationsOfStep(disk, 5); ++from) {
    FaultFileSystem files = disk.Clone();
    CheckpointStore store(kExampleFolder, kExampleOptions, files);
    store.Load();
    files.FailFrom(from, ENOSPC);
    const SaveOutcome outcome = store.Save(ExampleCheckpoint(5).content);
    if (!outcome.saved) {
      EXPECT_TRUE(outcome.disk_full);
      EXPECT_EQ(files.Paths(), disk.Paths());
    }
    EXPECT_FALSE(store.Save(ExampleCheckpoint(6).content).saved);  // still full
    files.ClearFaults();
    EXPECT_EQ(LoadedStep(files, "full"), outcome.saved ? 5 : 4);
    EXPECT_TRUE(store.Save(ExampleCheckpoint(7).content).saved);
    EXPECT_EQ(LoadedStep(files, "free again"), 7);
    ExpectGood(files, "free again");
  }
}

// As long as a crash may undo the newer checkpoint, the older one must stay.
TEST(CheckpointCrashTest, TheOlderOneStaysUntilTheNewerIsDurable) {
  constexpr CheckpointStoreOptions kKeepOne{.keep = 1, .segment_records = 16};
  int undurable = 0;
  for (std::size_t at = 0; at < 60; ++at) {
    FaultFileSystem files;
    CheckpointStore store(kExampleFolder, kKeepOne, files);
    store.Load();
    store.Save(ExampleCheckpoint(1).content);
    files.FailAt(files.operations() + at, EIO);
    const SaveOutcome outcome = store.Save(ExampleCheckpoint(2).content);
    if (!outcome.saved || outcome.problem.empty()) continue;
    ++undurable;
    EXPECT_EQ(InspectCheckpoints(kExampleFolder, files).size(), 2u);
    EXPECT_TRUE(store.Save(ExampleCheckpoint(3).content).problem.empty());
    EXPECT_EQ(InspectCheckpoints(kExampleFolder, files).size(), 1u);
  }
  EXPECT_EQ(undurable, 1);
}

// If reading fails, the older checkpoint is used where possible. The folder is never taken for that
// of a new run.
TEST(CheckpointCrashTest, FailingReadsNeverLookLikeANewRun) {
  FaultFileSystem disk;
  SaveExamples(disk, 4);
  disk.Restart();
  FaultFileSystem counter = disk.Clone();
  LoadNewestCheckpoint(kExampleFolder, counter);
  std::size_t older = 0;
  for (std::size_t at = 0; at < counter.operations(); ++at) {
    FaultFileSystem files = disk.Clone();
    files.FailAt(at, EIO);
    try {
      const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
      ASSERT_TRUE(result.checkpoint) << at;
      EXPECT_TRUE(IsExample(*result.checkpoint, StepOf(*result.checkpoint)));
      EXPECT_EQ(result.notes.empty(), StepOf(*result.checkpoint) == 4);
      older += StepOf(*result.checkpoint) == 3 ? 1 : 0;
    } catch (const Error&) {
      EXPECT_EQ(at, 0u);  // the folder itself
    }
  }
  EXPECT_GE(older, 5u);
}

}  // namespace
}  // namespace uper::checkpoint
