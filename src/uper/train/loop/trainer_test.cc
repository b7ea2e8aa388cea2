#include "uper/train/loop/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "uper/base/files/byte_stream.h"
#include "uper/checkpoint/checkpoint_verify.h"
#include "uper/train/loop/evaluator.h"
#include "uper/train/loop/policy.h"
#include "uper/train/run/make_engine.h"

namespace uper {
namespace {

// Counts its steps and ends every seventh; the observation is the count.
class CountingEnvironment final : public Environment {
 public:
  const EnvironmentSpec& spec() const override { return spec_; }

 private:
  void DoReset(std::span<std::byte> observation) override {
    steps_ = 0;
    observation[0] = std::byte{0};
  }
  TimeStep DoStep(int action, std::span<std::byte> observation) override {
    ++steps_;
    observation[0] = std::byte{steps_};
    const bool last = steps_ == 7;
    return {
        .reward = static_cast<double>(action), .discount = last ? 0.0 : 1.0, .terminated = last};
  }
  void DoSaveState(ByteWriter& writer) const override { writer.Write(steps_); }
  void DoRestoreState(ByteReader& reader) override { steps_ = reader.Read<std::uint8_t>(); }

  EnvironmentSpec spec_{.name = "test/counting", .actions = 2};
  std::uint8_t steps_ = 0;
};

// Does nothing but count updates, and fails at a chosen one.
class FakeLearner final : public Learner {
 public:
  explicit FakeLearner(std::int64_t fails_at)
      : layout_(spec_.network), parameters_(layout_.size()), fails_at_(fails_at) {}

  const LearnerSpec& spec() const override { return spec_; }
  const ParameterLayout& layout() const override { return layout_; }
  LearnerOutput Update(const LearnerBatch&) override {
    if (updates_ + 1 == fails_at_) {
      throw Error(ErrorKind::kNumeric, "the loss or the gradient is not finite");
    }
    ++updates_;
    return {.loss = 1, .gradient_norm = 2, .td_error = td_errors_, .uncertainty = uncertainty_};
  }
  std::span<const float> gradient() override { return parameters_; }
  void ActionValues(std::span<const std::byte>, int count, std::span<float> q) override {
    for (int i = 0; i < count; ++i) q[2 * i + 1] = 1;  // action 1 is the better one
  }
  void CopyTarget() override { ++copies; }
  LearnerState State() override {
    return {.online = parameters_,
            .target = parameters_,
            .first_moment = parameters_,
            .second_moment = parameters_,
            .updates = updates_};
  }
  void CommitState(std::int64_t updates) override { updates_ = updates; }

  int copies = 0;

 private:
  LearnerSpec spec_{.network = MlpNetwork(1, {1}, {.actions = 2}), .batch = 4};
  ParameterLayout layout_;
  std::vector<float> parameters_;
  std::int64_t fails_at_;
  std::int64_t updates_ = 0;
  std::vector<double> td_errors_ = std::vector<double>(4, 0.5);
  std::vector<Uncertainty> uncertainty_ = std::vector<Uncertainty>(4);
};

RunConfig SmallConfig() {
  RunConfig config;
  config.frames = 100;
  config.log_every_frames = 20;
  config.checkpoint_every_frames = 30;
  config.evaluate_every_frames = 40;
  config.evaluation_frames = 10;
  config.agent.learn_period_frames = 2;
  config.agent.target_period_frames = 25;
  config.agent.priority = PriorityRule::kTd;
  config.replay.minimum_transitions = 10;
  config.replay.batch_size = 4;
  config.replay.capacity_transitions = 50;
  config.exploration = {.epsilon_from = 0, .epsilon_to = 0, .start_frames = 0, .end_frames = 1};
  return config;
}

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() { std::filesystem::remove_all(folder_.path()); }
  ~TrainerTest() override { std::filesystem::remove_all(folder_.path()); }

  Trainer MakeTrainer(const RunConfig& config, std::int64_t fails_at = -1) {
    std::filesystem::create_directories(folder_.path());
    TrainerParts parts;
    parts.make_environment = [](std::uint64_t) { return std::make_unique<CountingEnvironment>(); };
    auto learner = std::make_unique<FakeLearner>(fails_at);
    learner_ = learner.get();
    parts.learner = std::move(learner);
    AddEngine(config, parts.make_environment(0)->spec(), /*threads=*/1, parts);
    store_ = parts.store.get();
    return Trainer(config, folder_.trainer_files(), std::move(parts),
                   {.progress =
                        [this](const TrainingProgress& progress) {
                          if (progress.row != nullptr) rows_.push_back(*progress.row);
                        },
                    .warn = [this](const std::string& message) { warnings_.push_back(message); }});
  }

  RunFolder folder_{std::filesystem::path(testing::TempDir()) /
                    testing::UnitTest::GetInstance()->current_test_info()->name()};
  FakeLearner* learner_ = nullptr;
  TransitionStore* store_ = nullptr;
  std::vector<MetricsRow> rows_;
  std::vector<std::string> warnings_;
  StopFlag stop_ = false;
};

TEST_F(TrainerTest, KeepsTheCadence) {
  Trainer trainer = MakeTrainer(SmallConfig());
  EXPECT_TRUE(trainer.Run(stop_));
  EXPECT_EQ(trainer.frames(), 100);
  // Learning starts when ten transitions are stored: at frames 10, 12, ..., 100.
  EXPECT_EQ(trainer.updates(), 46);
  EXPECT_EQ(learner_->copies, 4);  // frames 25, 50, 75, 100
  // Rows at 0 (the first evaluation), 20, 40, 60, 80, 100.
  ASSERT_EQ(rows_.size(), 6);
  EXPECT_EQ(rows_[1].frames, 20);
  EXPECT_TRUE(rows_[0].eval_return.has_value());
  EXPECT_FALSE(rows_[1].eval_return.has_value());
  EXPECT_TRUE(rows_[2].eval_return.has_value());  // 40
  EXPECT_TRUE(rows_[5].eval_return.has_value());  // the end
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(TrainerTest, ReportsReturnsAndStoresPriorities) {
  Trainer trainer = MakeTrainer(SmallConfig());
  trainer.Run(stop_);
  EXPECT_EQ(rows_[1].train_return, 7);  // seven steps of action 1
  EXPECT_EQ(rows_[1].train_episode_frames, 7);
  EXPECT_EQ(rows_[1].loss, 1);
  EXPECT_EQ(rows_[1].priority_mean, 0.5);
  EXPECT_EQ(rows_[1].effective_sample_size.has_value(), true);
  EXPECT_GT(store_->buffer().counters().updated, 0);
}

TEST_F(TrainerTest, StopsBeforeAnythingIsPoisoned) {
  Trainer trainer = MakeTrainer(SmallConfig(), /*fails_at=*/30);
  try {
    trainer.Run(stop_);
    FAIL() << "an update that is not finite must end the run";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumeric);
    EXPECT_NE(std::string(error.what()).find("transitions of the batch: "), std::string::npos);
  }
  EXPECT_TRUE(checkpoint::VerifyCheckpoints(folder_.checkpoints()).good());
  Trainer resumed = MakeTrainer(SmallConfig());
  EXPECT_EQ(resumed.frames(), 60);  // the last save before update 30, which was due at frame 68
}

TEST_F(TrainerTest, GoesOnWhereItWasInterrupted) {
  const RunConfig config = SmallConfig();
  {
    Trainer trainer = MakeTrainer(config);
    stop_ = true;
    EXPECT_FALSE(trainer.Run(stop_));
  }
  stop_ = false;
  Trainer resumed = MakeTrainer(config);
  EXPECT_TRUE(resumed.Run(stop_));
  EXPECT_EQ(resumed.updates(), 46);
  ASSERT_EQ(rows_.size(), 6);  // the interrupted first evaluation was repeated, not lost
  EXPECT_EQ(rows_[0].frames, 0);
}

TEST(EpsilonGreedyTest, FollowsValuesTiesAndEpsilon) {
  RandomStream stream(1, "policy test");
  const std::vector<float> q = {0, 3, 1, 3};
  int counts[4] = {};
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i) {
    const std::optional<int> random = RandomAction(q.size(), 0.2, stream);
    ++counts[random ? *random : GreedyAction(q, stream)];
  }
  // P = 0.05 for the others, 0.45 for each of the two best; 5 standard errors.
  EXPECT_NEAR(counts[0], 0.05 * kDraws, 5 * 43.6);
  EXPECT_NEAR(counts[2], 0.05 * kDraws, 5 * 43.6);
  EXPECT_NEAR(counts[1], 0.45 * kDraws, 5 * 99.5);
  EXPECT_NEAR(counts[3], 0.45 * kDraws, 5 * 99.5);
}

TEST(EvaluatorTest, CountsCompleteEpisodesAndFallsBackToAPart) {
  FakeLearner learner(-1);
  CountingEnvironment environment;
  const StopFlag stop = false;
  const EvaluationResult whole =
      Evaluate(learner, environment, {.episodes = 3, .epsilon = 0}, stop);
  EXPECT_EQ(whole.returns, (std::vector<double>{7, 7, 7}));
  EXPECT_EQ(whole.frames, 21);
  const EvaluationResult part = Evaluate(learner, environment, {.frames = 5, .epsilon = 0}, stop);
  EXPECT_TRUE(part.returns.empty());
  EXPECT_EQ(part.mean_return(), 5);
}

TEST(EvaluatorTest, ShowsEachDecisionAndTheEnd) {
  FakeLearner learner(-1);
  CountingEnvironment environment;
  const StopFlag stop = false;
  std::vector<EvaluationMoment> moments;
  const auto watch = [&](const EvaluationMoment& moment) {
    EXPECT_EQ(std::to_integer<std::int64_t>(moment.seen[0]), moment.step);  // it counts its steps
    moments.push_back(moment);
  };
  Evaluate(learner, environment, {.episodes = 2, .epsilon = 0}, stop, watch);
  ASSERT_EQ(moments.size(), 16);  // twice seven decisions and an end
  for (std::size_t i = 0; i < moments.size(); ++i) {
    EXPECT_EQ(moments[i].episode, i / 8);
    EXPECT_EQ(moments[i].step, i % 8);
    EXPECT_EQ(moments[i].episode_return, i % 8);
    EXPECT_EQ(moments[i].last, i % 8 == 7);
    EXPECT_EQ(moments[i].action, 1);
  }
}

TEST(LearnerTest, NeedNotShowItsMembers) {
  FakeLearner learner(-1);
  try {
    learner.MemberOutputs({}, {});
    FAIL() << "it has none to show";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace uper
