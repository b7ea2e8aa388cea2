#include "uper/replay/transition_replay.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "uper/base/error.h"
#include "uper/replay/n_step_accumulator.h"
#include "uper/replay/replay_for_tests.h"

namespace uper::transition_replay_test {
namespace {

constexpr std::size_t kDepth = 4;
constexpr std::size_t kFrameBytes = sizeof(std::uint32_t);
constexpr WeightOptions kWeights{.importance_exponent = 0.5};

std::vector<std::uint8_t> Pixels(std::uint32_t content) {
  std::vector<std::uint8_t> pixels(kFrameBytes);
  std::memcpy(pixels.data(), &content, kFrameBytes);
  return pixels;
}

// The slow reference keeps whole episodes of whole observations. It shares no frames and folds no
// steps in advance. The content of a frame is a number that is unique among all frames and never 0.
struct Episode {
  std::vector<std::uint32_t> frames;  // content; one more than steps
  std::vector<std::uint64_t> frame_ids;
  std::vector<int> actions;
  std::vector<double> rewards;
  std::vector<double> discounts;

  std::vector<std::uint32_t> StackAt(std::size_t t) const {
    std::vector<std::uint32_t> stack;
    for (std::size_t i = t < kDepth ? 0 : t + 1 - kDepth; i <= t; ++i) stack.push_back(frames[i]);
    stack.resize(kDepth, 0);
    return stack;
  }
};

struct Expected {
  std::vector<std::uint32_t> s_tm1;
  std::vector<std::uint32_t> s_t;
  int action;
  float reward;
  float discount;
};

Expected TransitionFrom(const Episode& episode, std::size_t t, std::size_t n) {
  const std::size_t end = std::min(t + n, episode.actions.size());
  double reward = 0;
  double discount = 1;
  for (std::size_t i = t; i < end; ++i) {
    reward += discount * episode.rewards[i];
    discount *= episode.discounts[i];
  }
  return {episode.StackAt(t), episode.StackAt(end), episode.actions[t], static_cast<float>(reward),
          static_cast<float>(discount)};
}

// One environment: the code under test on one side, the reference on the other.
struct Lane {
  FrameStack stack{kDepth};
  NStepAccumulator<FrameStack> accumulator;
  Episode episode;
};

class Harness {
 public:
  Harness(std::size_t lanes, std::size_t n, std::size_t capacity, std::size_t frames,
          std::uint64_t seed)
      : n_(n),
        random_(seed, "test"),
        replay_(Make(capacity, frames)),
        lanes_(lanes, Lane{.accumulator = NStepAccumulator<FrameStack>(n), .episode = {}}) {}

  static FrameReplay Make(std::size_t capacity, std::size_t frames) {
    return FrameReplay(
        {.buffer = SmallBuffer(capacity, 0.6, 0.01), .masks = {.members = 10, .probability = 0.5}},
        FrameStore({.capacity = capacity,
                    .frame_bytes = kFrameBytes,
                    .stack_depth = kDepth,
                    .frame_capacity = frames}),
        ReplayStreams(9));
  }

  void StepRandomLane() {
    Lane& lane = lanes_[random_.UniformInt(lanes_.size())];
    if (lane.episode.frames.empty()) return Reset(lane);
    const int action = static_cast<int>(random_.UniformInt(18));
    const StepOutcome outcome{.reward = static_cast<double>(random_.UniformInt(9)) - 4,
                              .discount = random_.Bernoulli(0.1) ? 0.0 : 0.5,
                              .terminated = random_.Bernoulli(0.06),
                              .truncated = random_.Bernoulli(0.06)};
    Observe(lane);
    lane.episode.actions.push_back(action);
    lane.episode.rewards.push_back(outcome.reward);
    lane.episode.discounts.push_back(outcome.terminated ? 0.0 : outcome.discount);
    const bool last = outcome.terminated || outcome.truncated;
    Store(lane, lane.accumulator.Step(action, outcome, lane.stack), last);
    if (last) lane.episode = {};
  }

  // Checks every live transition byte by byte, and that exactly the right ones are live.
  void Check() {
    replay_.CheckValid();
    ASSERT_EQ(replay_.buffer().next_id(), expected_.size());
    ASSERT_EQ(replay_.buffer().first_id(), FirstLive());
    ReplayBatch batch = replay_.MakeBatch(1);
    for (std::uint64_t id = FirstLive(); id < expected_.size(); ++id) {
      replay_.Gather(id, 0, batch.view());
      ExpectRow(batch, 0, id);
    }
    if (replay_.size() == 0) return;
    ReplayBatch drawn = replay_.MakeBatch(5);
    replay_.Sample(kWeights, drawn.view());
    for (std::size_t row = 0; row < 5; ++row) ExpectRow(drawn, row, drawn.ids[row]);
  }

  FrameReplay& replay() { return replay_; }
  std::uint64_t early_evictions() const { return early_evictions_; }

 private:
  void Reset(Lane& lane) {
    lane.stack.Clear();
    Observe(lane);
    lane.accumulator.Start(lane.stack);
  }

  void Observe(Lane& lane) {
    const std::uint64_t frame = replay_.AddFrame(Pixels(++content_));
    lane.stack.Push(frame);
    lane.episode.frames.push_back(content_);
    lane.episode.frame_ids.push_back(frame);
  }

  void Store(Lane& lane, std::span<const Transition<FrameStack>> emitted, bool last) {
    const std::size_t steps = lane.episode.actions.size();
    const std::size_t begin = steps < n_ ? 0 : steps - n_;
    const std::size_t end = last ? steps : (steps < n_ ? 0 : begin + 1);
    ASSERT_EQ(emitted.size(), end - begin);
    for (std::size_t t = begin; t < end; ++t) {
      ASSERT_EQ(replay_.Add(emitted[t - begin]), expected_.size());
      for (const std::size_t s : {t, std::min(t + n_, steps)}) {
        for (std::size_t i = s < kDepth ? 0 : s + 1 - kDepth; i <= s; ++i) {
          last_user_[lane.episode.frame_ids[i]] = expected_.size();
        }
      }
      expected_.push_back(TransitionFrom(lane.episode, t, n_));
    }
  }

  std::uint64_t FirstLive() {
    const std::uint64_t capacity = replay_.buffer().capacity();
    std::uint64_t first = expected_.size() - std::min<std::uint64_t>(expected_.size(), capacity);
    const FrameStore& store = replay_.observations();
    for (const auto& [frame, user] : last_user_) {
      if (frame >= store.next_frame() -
                       std::min<std::uint64_t>(store.next_frame(), store.frame_capacity())) {
        continue;
      }
      if (user + 1 > first) ++early_evictions_;
      first = std::max(first, user + 1);
    }
    return first;
  }

  void ExpectRow(const ReplayBatch& batch, std::size_t row, std::uint64_t id) {
    const Expected& expected = expected_[id];
    const std::size_t bytes = kDepth * kFrameBytes;
    ASSERT_EQ(std::memcmp(&batch.s_tm1[row * bytes], expected.s_tm1.data(), bytes), 0) << id;
    ASSERT_EQ(std::memcmp(&batch.s_t[row * bytes], expected.s_t.data(), bytes), 0) << id;
    ASSERT_EQ(batch.a_tm1[row], expected.action);
    ASSERT_EQ(batch.r_t[row], expected.reward);
    ASSERT_EQ(batch.discount_t[row], expected.discount);
    const auto [mask, is_new] = masks_.emplace(id, batch.masks[row]);
    ASSERT_EQ(mask->second, batch.masks[row]) << "a mask is drawn once";
    ASSERT_LT(batch.masks[row], 1U << 10);
  }

  std::size_t n_;
  RandomStream random_;
  FrameReplay replay_;
  std::vector<Lane> lanes_;
  std::uint32_t content_ = 0;
  std::vector<Expected> expected_;                    // by id, evicted ones included
  std::map<std::uint64_t, std::uint64_t> last_user_;  // frame -> newest transition with it
  std::map<std::uint64_t, std::uint64_t> masks_;
  std::uint64_t early_evictions_ = 0;
};

TEST(TransitionReplay, ModelBasedManyLanesAgreeWithWholeEpisodes) {
  for (const std::size_t lanes : {1, 2, 5}) {
    for (const std::size_t n : {1, 3, 7}) {
      Harness harness(lanes, n, 60, 200, 100 * lanes + n);
      for (std::uint64_t step = 0; step < Scaled(1200, 300); ++step) {
        harness.StepRandomLane();
        ASSERT_NO_FATAL_FAILURE(harness.Check()) << "lanes " << lanes << " n " << n;
      }
      EXPECT_EQ(harness.early_evictions(), 0U);
    }
  }
}

// With fewer frames than the transitions need, the oldest transitions must leave early, and no
// others.
TEST(TransitionReplay, ModelBasedWithTooFewFramesEvictsExactlyTheUsers) {
  for (const std::size_t n : {1, 4}) {
    Harness harness(2, n, 60, 50, n);
    for (std::uint64_t step = 0; step < Scaled(1000, 300); ++step) {
      harness.StepRandomLane();
      ASSERT_NO_FATAL_FAILURE(harness.Check());
    }
    EXPECT_GT(harness.early_evictions(), 0U);
  }
}

TEST(TransitionReplay, StateRoundTripContinuesBitForBit) {
  Harness harness(3, 3, 60, 90, 5);
  for (int step = 0; step < 400; ++step) harness.StepRandomLane();
  FrameReplay& original = harness.replay();
  FrameReplay restored = Harness::Make(60, 90);
  restored.SetState(original.GetState());
  restored.CheckValid();
  RandomStream random(6, "test");
  FrameStack stack(kDepth);
  for (int round = 0; round < 100; ++round) {
    ReplayBatch one = original.MakeBatch(8);
    ReplayBatch two = restored.MakeBatch(8);
    original.Sample(kWeights, one.view());
    restored.Sample(kWeights, two.view());
    ASSERT_EQ(one.ids, two.ids);
    ASSERT_EQ(one.probabilities, two.probabilities);
    ASSERT_EQ(one.weights, two.weights);
    ASSERT_EQ(one.s_tm1, two.s_tm1);
    ASSERT_EQ(one.s_t, two.s_t);
    ASSERT_EQ(one.a_tm1, two.a_tm1);
    ASSERT_EQ(one.r_t, two.r_t);
    ASSERT_EQ(one.masks, two.masks);
    std::vector<double> priorities(8);
    for (double& priority : priorities) priority = random.Uniform();
    original.SetPriorities(one.ids, priorities);
    restored.SetPriorities(two.ids, priorities);
    const auto pixels = Pixels(1'000'000U + static_cast<std::uint32_t>(round));
    const std::uint64_t frame = original.AddFrame(pixels);
    ASSERT_EQ(restored.AddFrame(pixels), frame);
    const FrameStack before = stack;
    stack.Push(frame);
    const Transition<FrameStack> transition{before, round, 1, 0.9, stack};
    ASSERT_EQ(original.Add(transition), restored.Add(transition));
    ASSERT_EQ(original.buffer().first_id(), restored.buffer().first_id());
  }
}

WholeReplay MakeWholeReplay(std::size_t capacity) {
  return WholeReplay({.buffer = SmallBuffer(capacity, 0.6, 0), .masks = {}},
                     WholeObservations(capacity, sizeof(std::uint64_t)), ReplayStreams(3));
}

std::vector<std::byte> NumberBytes(std::uint64_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

TEST(TransitionReplay, WholeObservationsKeepWhatWasAddedAndResume) {
  WholeReplay replay = MakeWholeReplay(7);
  for (std::uint64_t i = 0; i < 30; ++i) {
    replay.Add({NumberBytes(i), static_cast<std::int32_t>(i), 0.5 * static_cast<double>(i), 0.9,
                NumberBytes(i + 1)},
               1.0 + static_cast<double>(i));
  }
  WholeReplay restored = MakeWholeReplay(7);
  restored.SetState(replay.GetState());
  ReplayBatch batch = restored.MakeBatch(50);
  ReplayBatch same = replay.MakeBatch(50);
  restored.Sample(kWeights, batch.view());
  replay.Sample(kWeights, same.view());
  EXPECT_EQ(batch.ids, same.ids);
  EXPECT_EQ(batch.s_t, same.s_t);
  for (std::size_t row = 0; row < 50; ++row) {
    std::uint64_t s_tm1 = 0;
    std::uint64_t s_t = 0;
    std::memcpy(&s_tm1, &batch.s_tm1[row * sizeof(s_tm1)], sizeof(s_tm1));
    std::memcpy(&s_t, &batch.s_t[row * sizeof(s_t)], sizeof(s_t));
    ASSERT_EQ(s_tm1, batch.ids[row]);
    ASSERT_EQ(s_t, batch.ids[row] + 1);
    ASSERT_EQ(batch.a_tm1[row], static_cast<std::int32_t>(s_tm1));
    ASSERT_EQ(batch.r_t[row], 0.5F * static_cast<float>(s_tm1));
    ASSERT_EQ(batch.masks[row], 1U);
  }
}

TEST(TransitionReplay, ARefusedTransitionChangesNothing) {
  WholeReplay replay = MakeWholeReplay(2);
  for (std::uint64_t i = 0; i < 3; ++i) replay.Add({NumberBytes(i), 0, 0, 0, NumberBytes(i)});
  const auto before = replay.GetState();
  EXPECT_THROW(replay.Add({NumberBytes(1), 0, 0, 0, {}}), Error);
  replay.CheckValid();
  const auto after = replay.GetState();
  EXPECT_EQ(before.observations.rows, after.observations.rows);
  EXPECT_EQ(before.masks.rows, after.masks.rows);
  EXPECT_EQ(before.masks.stream_position, after.masks.stream_position);
  EXPECT_EQ(before.buffer.next_id, after.buffer.next_id);
  ReplayBatch small = replay.MakeBatch(3);
  BatchView view = small.view();
  view.s_t = view.s_t.first(8);
  EXPECT_THROW(replay.Sample(kWeights, view), Error);
  EXPECT_THROW(replay.Gather(0, 0, small.view()), Error) << "evicted";
}

TEST(TransitionReplay, AMillionAtariTransitionsFitInto7300Megabytes) {
  TransitionReplayOptions options;
  options.masks.members = 10;
  EXPECT_LE(FrameReplayMemoryBytes(options, {}), 7.3e9);
}

}  // namespace
}  // namespace uper::transition_replay_test
