#include "uper/train/run/run_folder.h"

#include <gtest/gtest.h>

#include "uper/base/files/files_for_tests.h"

namespace uper {
namespace {

class RunFolderTest : public FolderTest {};

TEST_F(RunFolderTest, StatesOfARun) {
  const RunFolder run(folder_ / "run");
  EXPECT_EQ(run.State(), RunState::kNew);  // no folder at all
  std::filesystem::create_directories(run.checkpoints());
  PutFile(run.lock(), "");
  EXPECT_EQ(run.State(), RunState::kNew);
  PutFile(run.config(), "frames = 1\n");
  EXPECT_EQ(run.State(), RunState::kUnfinished);
  EXPECT_EQ(run.FinishedFrames(), std::nullopt);
  run.MarkFinished(12'345);
  EXPECT_EQ(run.State(), RunState::kFinished);
  EXPECT_EQ(run.FinishedFrames(), 12'345);
  run.ClearFinished();
  EXPECT_EQ(run.State(), RunState::kUnfinished);
  run.ClearFinished();  // nothing to do
}

TEST_F(RunFolderTest, CheckpointsWithoutConfigurationAreNotANewRun) {
  const RunFolder run(folder_);
  std::filesystem::create_directories(run.checkpoints());
  PutFile(run.checkpoints() / "manifest-00000001.json", "{}");
  EXPECT_EQ(Catch([&] { run.State(); }).kind, ErrorKind::kCorrupt);
}

TEST_F(RunFolderTest, ADamagedMarkerIsNotAFinishedRun) {
  const RunFolder run(folder_);
  for (const char* text : {"", "x", "12x\n", "-1\n", "99999999999999999999\n"}) {
    PutFile(run.finished(), text);
    EXPECT_EQ(Catch([&] { run.State(); }).kind, ErrorKind::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace uper
