#include "uper/engine/transition_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "uper/checkpoint/checkpoint_store.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"
#include "uper/envs/observation_stack.h"
#include "uper/train/loop/stacked_game_for_tests.h"
#include "uper/train/run/make_store.h"

namespace uper {
namespace {

constexpr int kHeight = 3;
constexpr int kWidth = 2;
constexpr int kStack = 3;
constexpr std::size_t kEnvironments = 2;
constexpr std::size_t kFrameBytes = kHeight * kWidth;
constexpr double kGamma = 0.5;

using Bytes = std::vector<std::byte>;

// One transition with its whole observations.
struct WholeTransition {
  Bytes s_tm1;
  int a_tm1;
  double r_t;
  double discount_t;
  Bytes s_t;
  bool noisy;
};

// The naive model: keeps every transition whole, and folds n steps by their definition.
class NaiveStore {
 public:
  explicit NaiveStore(std::size_t n) : n_(n), players_(kEnvironments) {}

  void Start(std::size_t environment, const Bytes& seen) { players_[environment] = {{seen}, {}}; }
  void Step(std::size_t environment, const StoredStep& step, const Bytes& seen) {
    Player& player = players_[environment];
    player.seen.push_back(seen);
    player.steps.push_back(step);
    const bool last = step.outcome.terminated || step.outcome.truncated;
    const std::size_t steps = player.steps.size();
    if (last) {
      for (std::size_t from = steps >= n_ ? steps - n_ : 0; from < steps; ++from) {
        Emit(player, from);
      }
    } else if (steps >= n_) {
      Emit(player, steps - n_);
    }
  }
  std::vector<WholeTransition> transitions;  // by id

 private:
  struct Player {
    std::vector<Bytes> seen;
    std::vector<StoredStep> steps;
  };

  // From step `from` to the newest.
  void Emit(const Player& player, std::size_t from) {
    double reward = 0;
    double discount = 1;
    bool noisy = false;
    for (std::size_t i = from; i < player.steps.size(); ++i) {
      const StepOutcome& outcome = player.steps[i].outcome;
      reward += discount * outcome.reward;
      discount *= outcome.terminated ? 0 : outcome.discount;
      noisy = noisy || outcome.noisy;
    }
    transitions.push_back({player.seen[from], player.steps[from].action, reward, discount,
                           player.seen.back(), noisy});
  }

  std::size_t n_;
  std::vector<Player> players_;
};

TransitionStoreOptions Options(std::size_t n_steps, std::size_t frame_capacity) {
  return {.replay = {.buffer = {.capacity = 40}, .masks = {.members = 10, .probability = 0.5}},
          .observation_bytes = kFrameBytes,
          .frame_stack = kStack,
          .frame_capacity = frame_capacity,
          .n_steps = n_steps,
          .environments = kEnvironments};
}

// Plays both environments into a memory and the model.
class Game {
 public:
  explicit Game(std::size_t n) : model(n) {
    for (std::size_t i = 0; i < kEnvironments; ++i) {
      environments_.push_back(std::make_unique<StaticEnvironment>(i, kHeight, kWidth, kStack));
      seen_.emplace_back(environments_[i]->spec());
      in_episode_.push_back(0);
    }
  }

  void Play(TransitionStore& store) {
    for (std::size_t i = 0; i < kEnvironments; ++i) {
      ObservationStack& seen = seen_[i];
      if (in_episode_[i] == 0) {
        const std::span<std::byte> frame = seen.next();
        environments_[i]->Reset(frame);
        seen.Start();
        store.Start(i, frame);
        model.Start(i, Seen(i));
        in_episode_[i] = 1;
        continue;
      }
      const int action = static_cast<int>(policy_.UniformInt(3));
      const std::span<std::byte> frame = seen.next();
      const TimeStep step = environments_[i]->Step(action, frame);
      seen.Push();
      const StoredStep stored{.action = action,
                              .outcome = {.reward = step.reward,
                                          .discount = step.discount * kGamma,
                                          .terminated = step.terminated,
                                          .truncated = step.truncated,
                                          .noisy = step.noisy}};
      store.Add(i, stored, frame);
      model.Step(i, stored, Seen(i));
      in_episode_[i] = step.last() ? 0 : 1;
    }
  }

  // The observations of all environments, one after the other.
  Bytes AllSeen() const {
    Bytes all;
    for (std::size_t i = 0; i < kEnvironments; ++i) {
      const Bytes seen = Seen(i);
      all.insert(all.end(), seen.begin(), seen.end());
    }
    return all;
  }

  NaiveStore model;

 private:
  Bytes Seen(std::size_t i) const { return {seen_[i].bytes().begin(), seen_[i].bytes().end()}; }

  std::vector<std::unique_ptr<StaticEnvironment>> environments_;
  std::vector<ObservationStack> seen_;
  std::vector<int> in_episode_;
  RandomStream policy_{1, "frame experience test"};
};

Bytes Row(const std::vector<std::byte>& rows, std::size_t row) {
  const std::size_t size = kFrameBytes * kStack;
  return {rows.begin() + row * size, rows.begin() + (row + 1) * size};
}

void ExpectDrawsMatch(TransitionStore& store, const NaiveStore& model) {
  ReplayBatch batch(8, kFrameBytes * kStack);
  store.Sample({}, batch.view());
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    const WholeTransition& expected = model.transitions.at(batch.ids[i]);
    ASSERT_EQ(Row(batch.s_tm1, i), expected.s_tm1) << "transition " << batch.ids[i];
    ASSERT_EQ(Row(batch.s_t, i), expected.s_t);
    ASSERT_EQ(batch.a_tm1[i], expected.a_tm1);
    ASSERT_EQ(batch.r_t[i], static_cast<float>(expected.r_t));
    ASSERT_EQ(batch.discount_t[i], static_cast<float>(expected.discount_t));
    ASSERT_EQ(store.IsNoisy(batch.ids[i]), expected.noisy);
  }
}

class TransitionStoreModelTest : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(TransitionStoreModelTest, EqualsAMemoryOfWholeStacks) {
  const auto [n_steps, frame_capacity] = GetParam();
  const auto store_owner = MakeTransitionStore(Options(n_steps, frame_capacity), 1);
  TransitionStore& store = *store_owner;
  Game game(n_steps);
  for (int round = 0; round < 600; ++round) {
    game.Play(store);
    const auto current = store.current();
    ASSERT_EQ(Bytes(current.begin(), current.end()), game.AllSeen()) << "round " << round;
    ASSERT_EQ(store.buffer().next_id(), game.model.transitions.size());
    store.CheckValid();
    if (store.buffer().size() > 0) ExpectDrawsMatch(store, game.model);
  }
  EXPECT_GT(store.buffer().counters().evicted, 500);
  EXPECT_EQ(store.buffer().size() == 40, frame_capacity == 0);
}

// With 30 frames for 40 transitions the oldest leave because their frames do.
INSTANTIATE_TEST_SUITE_P(Sizes, TransitionStoreModelTest,
                         testing::Values(std::pair(1, 0), std::pair(3, 0), std::pair(1, 30),
                                         std::pair(5, 30)));

TEST(TransitionStoreTest, ContinuesFromACheckpointBitForBit) {
  constexpr std::size_t kSteps = 3;
  for (const int saved_at : {1, 2, 5, 17, 120, 333}) {
    checkpoint::FaultFileSystem files;
    checkpoint::CheckpointStore checkpoints("checkpoints", {.segment_records = 16}, files);
    checkpoints.Load();
    const auto store_owner = MakeTransitionStore(Options(kSteps, 0), 1);
    TransitionStore& store = *store_owner;
    Game game(kSteps);
    for (int round = 0; round < saved_at; ++round) game.Play(store);
    checkpoint::CheckpointContent content;
    store.Save(content);
    ASSERT_TRUE(checkpoints.Save(content).saved);

    const auto resumed_owner = MakeTransitionStore(Options(kSteps, 0), 1);
    TransitionStore& resumed = *resumed_owner;
    resumed.Restore(*checkpoint::CheckpointStore("checkpoints", {}, files).Load().checkpoint);
    EXPECT_TRUE(std::ranges::equal(resumed.current(), store.current()));
    // Both stores get the same rest of the game, one after the other, from copies of its beginning.
    Game other(kSteps);
    const auto ignored_owner = MakeTransitionStore(Options(kSteps, 0), 1);
    TransitionStore& ignored = *ignored_owner;
    for (int round = 0; round < saved_at; ++round) other.Play(ignored);
    ReplayBatch a(4, kFrameBytes * kStack);
    ReplayBatch b(4, kFrameBytes * kStack);
    for (int round = 0; round < 60; ++round) {
      game.Play(store);
      other.Play(resumed);
      if (store.buffer().size() == 0) continue;
      store.Sample({.importance_exponent = 0.5}, a.view());
      resumed.Sample({.importance_exponent = 0.5}, b.view());
      ASSERT_EQ(a.ids, b.ids);
      ASSERT_EQ(a.s_tm1, b.s_tm1);
      ASSERT_EQ(a.s_t, b.s_t);
      ASSERT_EQ(a.r_t, b.r_t);
      ASSERT_EQ(a.weights, b.weights);
      ASSERT_EQ(a.masks, b.masks);
      const std::vector<double> priorities = {1.0, 0.5, 2.0, 0.25 * round};
      store.mutable_buffer().SetPriorities(a.ids, priorities);
      resumed.mutable_buffer().SetPriorities(b.ids, priorities);
    }
  }
}

TEST(TransitionStoreTest, RefusesAnotherRunsRecords) {
  checkpoint::FaultFileSystem files;
  checkpoint::CheckpointStore checkpoints("checkpoints", {}, files);
  checkpoints.Load();
  const auto store_owner = MakeTransitionStore(Options(1, 0), 1);
  TransitionStore& store = *store_owner;
  Game game(1);
  for (int round = 0; round < 50; ++round) game.Play(store);
  checkpoint::CheckpointContent content;
  store.Save(content);
  ASSERT_TRUE(checkpoints.Save(content).saved);
  const checkpoint::LoadResult loaded =
      checkpoint::CheckpointStore("checkpoints", {}, files).Load();
  TransitionStoreOptions deeper = Options(1, 0);
  deeper.frame_stack = 4;
  EXPECT_EQ(Catch([&] { MakeTransitionStore(deeper, 1)->Restore(*loaded.checkpoint); }).kind,
            ErrorKind::kCorrupt);
  TransitionStoreOptions smaller = Options(1, 0);
  smaller.observation_bytes = kFrameBytes - 1;
  EXPECT_EQ(Catch([&] { MakeTransitionStore(smaller, 1)->Restore(*loaded.checkpoint); }).kind,
            ErrorKind::kCorrupt);
}

TEST(TransitionStoreTest, AMillionAtariTransitionsTakeAtMost7300Megabytes) {
  RunConfig config;
  const EnvironmentSpec atari{.actions = 18, .height = 84, .width = 84, .frame_stack = 4};
  EXPECT_EQ(config.replay.capacity_transitions, 1'000'000);
  EXPECT_LE(StoreOptionsFrom(config, atari).MemoryBytes(), 7'300'000'000);
}

}  // namespace
}  // namespace uper
