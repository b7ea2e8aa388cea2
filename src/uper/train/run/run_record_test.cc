#include "uper/train/run/run_record.h"

#include <gtest/gtest.h>

#include "uper/base/files/files_for_tests.h"

namespace uper {
namespace {

class RunRecordTest : public FolderTest {};

TEST_F(RunRecordTest, RoundTrip) {
  RunRecord record{.version = "0.2",
                   .git_revision = "abc",
                   .git_dirty = true,
                   .command = {"uper", "train", "bad\xff utf8"},
                   .seed = 7,
                   .start_time = UtcTime(0)};
  record.machine = {
      .cpu = "a \"cpu\"", .cores = 3, .memory_bytes = 1LL << 40, .instruction_path = "avx2"};
  WriteRunRecord(folder_ / "run.json", record);
  const RunRecord read = ReadRunRecord(folder_ / "run.json");
  EXPECT_EQ(read.version, "0.2");
  EXPECT_EQ(read.git_revision, "abc");
  EXPECT_TRUE(read.git_dirty);
  EXPECT_EQ(read.command[1], "train");
  EXPECT_EQ(read.seed, 7);
  EXPECT_EQ(read.start_time, "1970-01-01T00:00:00Z");
  EXPECT_EQ(read.machine.cpu, "a \"cpu\"");
  EXPECT_EQ(read.machine.cores, 3);
  EXPECT_EQ(read.machine.memory_bytes, 1LL << 40);
  EXPECT_EQ(read.machine.instruction_path, "avx2");
}

TEST_F(RunRecordTest, MissingAndDamagedFilesAreToldApart) {
  EXPECT_EQ(Catch([&] { ReadRunRecord(folder_ / "run.json"); }).kind, ErrorKind::kMissingData);
  for (const char* text : {"", "{", "[]", "{\"version\": 1}", "{\"machine\": {}}"}) {
    PutFile(folder_ / "run.json", text);
    EXPECT_EQ(Catch([&] { ReadRunRecord(folder_ / "run.json"); }).kind, ErrorKind::kCorrupt);
  }
}

TEST(RecordedCommandTest, TellsNothingAboutTheUser) {
  const std::vector<std::string> command = {
      "/home/joe/uper/build/uper", "train",  "--out",
      "/home/joe/runs/x",          "--set",  "environment.rom_dir=/home/joe/roms/",
      "~/secret/c.toml",           "runs/a", "--out=/tmp/y"};
  const std::vector<std::string> expected = {".../uper",   "train",  "--out",
                                             ".../x",      "--set",  "environment.rom_dir=.../",
                                             ".../c.toml", "runs/a", "--out=.../y"};
  EXPECT_EQ(RecordedCommand(command), expected);
}

TEST(DescribeMachineTest, KnowsThisMachine) {
  const MachineInfo machine = DescribeMachine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_bytes, 1 << 28);
}

TEST_F(RunRecordTest, SummaryRoundTripWithAndWithoutEvaluation) {
  RunSummary summary{.agent = "dqn",
                     .env = "minatar/breakout",
                     .seed = 3,
                     .frames = 1'000'000'000,
                     .updates = 5,
                     .final_eval_return = 1.5,
                     .wall_seconds = 0.1,
                     .frames_per_second = 1e4};
  WriteRunSummary(folder_ / "summary.json", summary);
  const RunSummary read = ReadRunSummary(folder_ / "summary.json");
  EXPECT_EQ(read.agent, "dqn");
  EXPECT_EQ(read.env, "minatar/breakout");
  EXPECT_EQ(read.seed, 3);
  EXPECT_EQ(read.frames, 1'000'000'000);
  EXPECT_EQ(read.updates, 5);
  EXPECT_EQ(read.final_eval_return, 1.5);
  EXPECT_EQ(read.best_eval_return, std::nullopt);
  EXPECT_EQ(read.wall_seconds, 0.1);
  EXPECT_EQ(read.frames_per_second, 1e4);
  EXPECT_NE(FileContent(folder_ / "summary.json").find("\"best_eval_return\": null"),
            std::string::npos);
}

}  // namespace
}  // namespace uper
