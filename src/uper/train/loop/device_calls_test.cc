// The calls that reach a replay memory on a GPU: their order and their arguments. If a change of
// the training loop keeps these calls, it keeps the work of the GPU.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "uper/train/loop/small_runs_for_tests.h"

namespace uper {
namespace {

struct Calls {
  std::string name;
  int environments = 1;
  int stack = 3;
  bool overlap = false;
  bool uniform = false;
  // Recorded with the trainer of version 0.1.
  std::size_t count = 0;
  std::string checksum;
};

constexpr int kRecordedRounds = 2000;

const Calls kCalls[] = {
    {"one", 1, 3, false, false, 19145, "b6a530941b506db922d04a46b7b2e1ef"},
    {"one_overlap", 1, 3, true, false, 19703, "28d8d8ab8d52b406797ea67c39997676"},
    {"one_uniform_overlap", 1, 3, true, true, 19686, "37c09dcc879bbd526ed8c5ef922df243"},
    {"one_whole_overlap", 1, 1, true, false, 7601, "c1c77359a9487b133deec0236876c073"},
    {"sixteen", 16, 3, false, false, 132991, "dde0438bf6400815255fdb6bbf52d8e0"},
    {"sixteen_overlap", 16, 3, true, false, 130741, "c3748d29faeb99c214eced0f8ffd4224"},
    {"sixteen_uniform", 16, 3, false, true, 132973, "a2f3a436c45e3c1d553a9a7d252d793c"},
    {"sixteen_whole_overlap", 16, 1, true, false, 87158, "723413c0ad22ef0e02d7736613df84fd"},
};

class DeviceCallsTest : public SmallRunTest {};

// UPER_RECORD=FOLDER writes the calls as text, to find a difference.
TEST_F(DeviceCallsTest, AreThoseThatWereRecorded) {
  for (std::size_t i = 0; i < std::size(kCalls); i += kStride) {
    const Calls& calls = kCalls[i];
    RunConfig config = StackConfig(calls.environments);
    config.frames = std::int64_t{4} * kRecordedRounds * calls.environments;
    config.log_every_frames = config.frames / 20;
    config.checkpoint_every_frames = config.frames / 7;
    config.evaluate_every_frames = config.frames / 5;
    config.agent.target_period_frames = 1000;
    config.replay.batch_size = std::max(config.replay.batch_size, calls.environments);
    if (calls.uniform) {
      config.replay.selector = SelectorKind::kUniform;
      config.agent.priority = PriorityRule::kUniform;
    }
    std::string all;
    std::size_t count = 0;
    const auto record = [&](const std::string& line) {
      all += line + "\n";
      ++count;
    };
    ASSERT_TRUE(
        Train(calls.name, config,
              {.overlap = calls.overlap, .stack = calls.stack, .gpu = true, .record = record}));
    if (const char* folder = std::getenv("UPER_RECORD")) {
      std::ofstream(std::filesystem::path(folder) / (calls.name + ".txt")) << all;
    }
    EXPECT_EQ(count, calls.count) << calls.name;
    EXPECT_EQ(checkpoint::ChecksumOf(std::as_bytes(std::span(all))), calls.checksum) << calls.name;
  }
}

}  // namespace
}  // namespace uper
