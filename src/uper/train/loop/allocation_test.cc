// After the first rounds a round must not allocate. The test counts every call of operator new in
// this program.

#include <gtest/gtest.h>

#include <functional>

#include "uper/base/allocations_for_tests.h"
#include "uper/train/loop/round_loop.h"
#include "uper/train/loop/small_runs_for_tests.h"

namespace uper {
namespace {

// Passes every call on to the fake of a replay memory, whose own allocations do not count.
class UncountedDeviceReplay final : public DeviceReplay {
 public:
  UncountedDeviceReplay(const DeviceReplaySpec& spec, Learner& learner) : fake_(spec, learner) {}

  const DeviceReplaySpec& spec() const override { return fake_.spec(); }
  void MirrorHost(const DeviceRecordSource& transitions,
                  const DeviceRecordSource& frames) override {
    const Uncounted uncounted;
    fake_.MirrorHost(transitions, frames);
  }
  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override {
    const Uncounted uncounted;
    return fake_.ReserveFrames(first, count);
  }
  void QueueUpdates(std::span<const DeviceUpdate> updates) override {
    const Uncounted uncounted;
    fake_.QueueUpdates(updates);
  }
  std::optional<DeviceUpdateReport> PollReport() override {
    const Uncounted uncounted;
    return fake_.PollReport();
  }
  std::optional<DeviceUpdateReport> AwaitReport() override {
    const Uncounted uncounted;
    return fake_.AwaitReport();
  }
  bool HasPendingUpdates() override { return fake_.HasPendingUpdates(); }
  void BeginDecisions(std::span<const std::uint32_t> slots, int count) override {
    const Uncounted uncounted;
    fake_.BeginDecisions(slots, count);
  }
  void AwaitActionValues(int count, std::span<float> q) override {
    fake_.AwaitActionValues(count, q);
  }
  void PrelaunchDecision() override { fake_.PrelaunchDecision(); }
  void GetPriorities(std::span<float> priorities, double& largest) override {
    const Uncounted uncounted;
    fake_.GetPriorities(priorities, largest);
  }
  void SetPriorities(std::span<const float> priorities, double largest) override {
    const Uncounted uncounted;
    fake_.SetPriorities(priorities, largest);
  }

 private:
  // Takes back what was counted since its construction. REQUIRES: no other thread allocates.
  struct Uncounted {
    Uncounted() = default;
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;
    ~Uncounted() { allocations = before; }
    const std::size_t before = allocations;
  };

  LateDeviceReplay fake_;
};

enum class Place { kHost, kDevice };

// Plays rounds with the parts of a run, without the trainer's log and checkpoints.
std::size_t AllocationsOfRounds(RunConfig config, int stack, Place replay) {
  config.evaluate_every_frames = config.log_every_frames = config.checkpoint_every_frames = 0;
  config.frames = 1'000'000;
  ThreadPool pool(1);
  TrainerParts parts;
  parts.make_environment = [stack](std::uint64_t index) -> std::unique_ptr<Environment> {
    return std::make_unique<StaticEnvironment>(index, 4, 3, stack);
  };
  const EnvironmentSpec spec = parts.make_environment(0)->spec();
  parts.learner = MakeCpuLearner(LearnerSpecFrom(config, spec), pool);
  InitializeLearner(config, *parts.learner);
  if (replay == Place::kDevice) {
    parts.device_replay = std::make_unique<UncountedDeviceReplay>(
        *DeviceReplaySpecFrom(config, spec), *parts.learner);
  }
  AddEngine(config, spec, /*threads=*/1, parts);
  Actors actors(parts.actors, parts.make_environment);
  Calendar calendar(config);
  calendar.FinishFrames(0);
  RoundLoop loop(config, actors, *parts.store, *parts.engine, calendar, *parts.record);
  const StopFlag stop = false;
  const auto play = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) loop.PlayRound(stop, /*must_end=*/false);
  };
  play(200);
  const std::size_t updates = parts.learner->updates();
  const std::size_t allocations = AllocationsDuring([&] { play(200); });
  EXPECT_GT(parts.learner->updates(), updates);  // it learned meanwhile
  return allocations;
}

TEST(RoundAllocationTest, TheCounterCounts) {
  EXPECT_GT(AllocationsDuring([] { std::vector<int>(100).front() = 1; }), 0u);
}

void ExpectNoAllocations(const std::function<void(RunConfig&)>& change, Place replay) {
  for (const int environments : {1, 3}) {
    for (const int stack : {1, 3}) {
      for (const Overlap overlap : {Overlap::kNo, Overlap::kYes}) {
        RunConfig config = StackConfig(environments);
        config.overlap_updates = overlap;
        change(config);
        EXPECT_EQ(AllocationsOfRounds(config, stack, replay), 0u)
            << environments << " environments, stack " << stack;
      }
    }
  }
}

TEST(RoundAllocationTest, ARoundAllocatesNothing) {
  ExpectNoAllocations([](RunConfig&) {}, Place::kHost);
}

TEST(RoundAllocationTest, ARoundWithADeviceAllocatesNothingOnTheHost) {
  ExpectNoAllocations([](RunConfig&) {}, Place::kDevice);
}

TEST(RoundAllocationTest, ARoundWithDrawsOfTheHostForADeviceAllocatesNothing) {
  const auto uniform = [](RunConfig& config) {
    config.replay.selector = SelectorKind::kUniform;
    config.agent.priority = PriorityRule::kUniform;
  };
  ExpectNoAllocations(uniform, Place::kDevice);
}

}  // namespace
}  // namespace uper
