#include "uper/envs/atari/atari_environment.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace uper {
namespace {

// Script of the console for one frame, counted from the reset.
struct Script {
  int game_over_at = 1000;
  std::vector<int> lives_lost_at;
  std::vector<int> rewards_at;
  bool fades = false;
  bool two_screens = false;  // drawn in turns
};

// A console whose screen has one color that depends on the frame. Frame n shows pixel 2 n, or 200 -
// 2 n if the console fades.
class ScriptedEmulator final : public atari::Emulator {
 public:
  ScriptedEmulator(const Script& script, std::vector<int>* log) : script_(script), log_(log) {
    for (int i = 0; i < 128; ++i) {
      const auto value = static_cast<std::uint8_t>(i);
      palette_.rgb[i] = {value, value, value};
      palette_.gray[i] = value;
    }
    Reset();
  }

  int height() const override { return 210; }
  int width() const override { return 160; }
  const atari::Palette& palette() const override { return palette_; }
  const std::vector<int>& actions() const override { return actions_; }
  void Reset() override {
    frame_ = 0;
    lives_ = 3;
    Draw();
    log_->push_back(-1);
  }
  int Act(int action) override {
    ++frame_;
    log_->push_back(action);
    Draw();
    for (const int at : script_.lives_lost_at) lives_ -= at == frame_ ? 1 : 0;
    int reward = 0;
    for (const int at : script_.rewards_at) reward += at == frame_ ? 10 : 0;
    return reward;
  }
  int lives() const override { return lives_; }
  bool game_over() const override { return frame_ >= script_.game_over_at; }
  std::span<const std::uint8_t> screen() const override { return screens_[Place()]; }
  bool screen_stays() const override { return script_.two_screens; }
  void Save(ByteWriter& writer) const override {
    writer.Write(frame_);
    writer.Write(lives_);
  }
  void Restore(ByteReader& reader) override {
    frame_ = reader.Read<int>();
    lives_ = reader.Read<int>();
    Draw();
  }

 private:
  int Place() const { return script_.two_screens ? frame_ % 2 : 0; }
  void Draw() {
    const int pixel = script_.fades ? 200 - 2 * frame_ : 2 * frame_;
    screens_[Place()].assign(std::size_t{210} * 160, static_cast<std::uint8_t>(pixel));
  }

  const Script script_;
  std::vector<int>* log_;
  atari::Palette palette_;
  const std::vector<int> actions_ = {0, 3, 4};
  int frame_ = 0;
  int lives_ = 3;
  std::array<std::vector<std::uint8_t>, 2> screens_;
};

AtariRules Zoo() { return ProtocolRules({.noop_max_frames = 1}); }
AtariRules Dopamine() { return ProtocolRules({.sticky = 0, .protocol = AtariProtocol::kDopamine}); }

class AtariEnvironmentTest : public testing::Test {
 protected:
  void Make(const AtariRules& rules, const Script& script = {}) {
    log_.clear();
    environment_ = std::make_unique<AtariEnvironment>(
        "atari/scripted", std::make_unique<ScriptedEmulator>(script, &log_), rules,
        RandomStream(1, "no-ops"), RandomStream(1, "sticky"));
    observation_.assign(environment_->spec().observation_bytes(), std::byte{0xFF});
  }
  // The gray value of the last observation, which must be of one color.
  int Reset() {
    environment_->Reset(observation_);
    return Color();
  }
  int Step(int action) {
    step_ = environment_->Step(action, observation_);
    return Color();
  }
  int Color() const {
    EXPECT_EQ(std::count(observation_.begin(), observation_.end(), observation_[0]),
              std::ssize(observation_));
    return std::to_integer<int>(observation_[0]);
  }

  std::vector<int> log_;  // actions the console got; -1: a reset
  std::unique_ptr<AtariEnvironment> environment_;
  std::vector<std::byte> observation_;
  TimeStep step_;
};

TEST_F(AtariEnvironmentTest, SpecIsOneGrayFrameOfAStack) {
  Make(Zoo());
  const EnvironmentSpec& spec = environment_->spec();
  EXPECT_EQ(spec.actions, 3);
  EXPECT_EQ(spec.observation_bytes(), 84u * 84u);
  EXPECT_EQ(spec.frame_stack, 4);
}

TEST_F(AtariEnvironmentTest, RendersTheFramesOfTheObservationInColor) {
  Make(Zoo(), {.game_over_at = 6});
  const auto rendered = [&] {
    Picture picture;
    EXPECT_TRUE(environment_->Render(picture));
    EXPECT_EQ(picture.height, 210);
    EXPECT_EQ(picture.width, 160);
    EXPECT_EQ(picture.rgb.size(), std::size_t{210} * 160 * 3);
    EXPECT_EQ(std::count(picture.rgb.begin(), picture.rgb.end(), picture.rgb[0]),
              std::ssize(picture.rgb));
    return int{picture.rgb[0]};
  };
  Reset();
  EXPECT_EQ(rendered(), 1);
  Step(1);
  EXPECT_EQ(rendered(), 5) << "the brighter of frames 4 and 5";
  EXPECT_EQ(Step(1), 0) << "over after one frame: the agent sees black";
  EXPECT_EQ(rendered(), 6) << "people see the screen";
}

TEST_F(AtariEnvironmentTest, TheThirdFrameCountsWhetherItsMemoryStaysOrNot) {
  for (const bool two_screens : {false, true}) {
    const Script script{.game_over_at = 12, .fades = true, .two_screens = two_screens};
    Make(Zoo(), script);
    EXPECT_EQ(Reset(), 99);
    EXPECT_EQ(Step(1), 96) << "the brighter of frames 4 and 5";
    EXPECT_EQ(Step(1), 92);
    EXPECT_EQ(Step(1), 88) << "over after the third of its frames";
    Make(Dopamine(), script);
    EXPECT_EQ(Reset(), 100);
    EXPECT_EQ(Step(1), 97);
    EXPECT_EQ(Step(1), 93);
  }
}

TEST_F(AtariEnvironmentTest, ZooShowsOneFrameThenTheMaximumOfTheLastTwo) {
  Make(Zoo(), {.rewards_at = {2, 5, 6}});
  EXPECT_EQ(Reset(), 1) << "one idle frame, shown alone; its reward does not count";
  EXPECT_EQ(Step(1), 5) << "frames 4 and 5";
  EXPECT_EQ(step_.frames, 4);
  EXPECT_EQ(step_.reward, 20) << "a sum";
  EXPECT_EQ(step_.discount, 1);
  EXPECT_EQ(Step(2), 9);
  EXPECT_EQ(step_.reward, 10);
  EXPECT_EQ(log_, (std::vector<int>{-1, -1, 0, 3, 3, 3, 3, 4, 4, 4, 4}));
}

TEST_F(AtariEnvironmentTest, ZooLostLifeOnlyStopsTheDiscount) {
  for (const int at : {2, 3, 5}) {
    Make(Zoo(), {.lives_lost_at = {at}});
    Reset();
    Step(0);
    EXPECT_EQ(step_.discount, 0) << at;
    EXPECT_FALSE(step_.last());
    EXPECT_EQ(step_.frames, 4);
    Step(0);
    EXPECT_EQ(step_.discount, 1);
  }
}

TEST_F(AtariEnvironmentTest, LifeLostInTheIdleFramesDoesNotCount) {
  Make(Zoo(), {.lives_lost_at = {1}});
  Reset();
  Step(0);
  EXPECT_EQ(step_.discount, 1);
}

// If the game ends early in a step, the remaining slots of the step are black.
TEST_F(AtariEnvironmentTest, ZooEndsAtOnceAndPadsWithBlack) {
  const int expected[] = {0, 0, 4, 5};
  for (int played = 1; played <= 4; ++played) {
    Make(Zoo(), {.game_over_at = 1 + played, .rewards_at = {1 + played}});
    Reset();
    EXPECT_EQ(Step(1), expected[played - 1]) << played;
    EXPECT_EQ(step_.frames, played);
    EXPECT_TRUE(step_.terminated);
    EXPECT_EQ(step_.discount, 0);
    EXPECT_EQ(step_.reward, 10);
  }
}

TEST_F(AtariEnvironmentTest, DopamineHasNoIdleFramesAndIgnoresLives) {
  Make(Dopamine(), {.lives_lost_at = {2}});
  EXPECT_EQ(Reset(), 0);
  EXPECT_EQ(Step(1), 4);
  EXPECT_EQ(step_.discount, 1);
  EXPECT_EQ(log_, (std::vector<int>{-1, -1, 3, 3, 3, 3}));
}

// The frame that ends the game is not stored: the picture shows the frames before it.
TEST_F(AtariEnvironmentTest, DopamineShowsWhatWasKept) {
  const int expected[] = {4, 4, 4, 7};
  for (int played = 1; played <= 4; ++played) {
    Make(Dopamine(), {.game_over_at = 4 + played});
    Reset();
    Step(0);
    EXPECT_EQ(Step(0), expected[played - 1]) << played;
    EXPECT_EQ(step_.frames, played);
    EXPECT_TRUE(step_.terminated);
  }
}

TEST_F(AtariEnvironmentTest, EpisodicLifeEndsWithALife) {
  AtariRules rules = Dopamine();
  rules.episodic_life = true;
  Make(rules, {.lives_lost_at = {6}});
  Reset();
  Step(0);
  EXPECT_FALSE(step_.terminated);
  Step(0);
  EXPECT_TRUE(step_.terminated);
  EXPECT_EQ(step_.discount, 0);
  EXPECT_EQ(step_.frames, 2);
}

TEST_F(AtariEnvironmentTest, IdleFramesAreOneToThirtyAndAllOccur) {
  Make(ProtocolRules({}));
  std::vector<int> seen(32);
  for (int i = 0; i < 1000; ++i) ++seen[static_cast<std::size_t>(Reset())];
  EXPECT_EQ(seen[0], 0);
  EXPECT_EQ(seen[31], 0);
  // 1000 / 30 = 33 each with a standard deviation of 5.7: within 5 of them.
  for (int count = 1; count <= 30; ++count) EXPECT_NEAR(seen[count], 33, 29) << count;
}

TEST_F(AtariEnvironmentTest, GameOverInTheIdleFramesStartsAgain) {
  Make(ProtocolRules({}), {.game_over_at = 3});
  for (int i = 0; i < 50; ++i) EXPECT_LT(Reset(), 3);
}

TEST_F(AtariEnvironmentTest, StickyFramesRepeatWhatWasExecuted) {
  AtariRules rules = Dopamine();
  rules.sticky = 0.25;
  Make(rules, {.game_over_at = 1'000'000});
  Reset();
  log_.clear();
  std::vector<int> wanted;
  RandomStream policy(5, "policy");
  for (int i = 0; i < 2000; ++i) {
    const int action = static_cast<int>(policy.UniformInt(3));
    environment_->Step(action, observation_);
    for (int frame = 0; frame < 4; ++frame) wanted.push_back(std::array{0, 3, 4}[action]);
  }
  int repeated = 0;
  int chances = 0;  // frames at which wanted and held action differ
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    ASSERT_TRUE(log_[i] == wanted[i] || log_[i] == log_[i - 1]);
    if (wanted[i] == log_[i - 1]) continue;
    ++chances;
    repeated += log_[i] == log_[i - 1] ? 1 : 0;
  }
  // A standard deviation of sqrt(0.25 * 0.75 * chances), chances about 1800.
  EXPECT_GT(chances, 1000);
  EXPECT_NEAR(repeated, 0.25 * chances, 4.5 * std::sqrt(0.1875 * chances));
}

TEST_F(AtariEnvironmentTest, StickyActionIsReleasedAtAReset) {
  AtariRules rules = Dopamine();
  rules.sticky = 1;
  Make(rules);
  Reset();
  log_.clear();
  Step(2);
  EXPECT_EQ(log_, (std::vector<int>{0, 0, 0, 0}));
}

TEST(ProtocolRulesTest, KeysOverrideTheProtocol) {
  const AtariRules zoo = ProtocolRules({});
  EXPECT_EQ(zoo.noop_max_frames, 30);
  EXPECT_EQ(zoo.sticky, 0);
  EXPECT_TRUE(zoo.discount_lost_lives);
  const AtariRules dopamine = ProtocolRules({.protocol = AtariProtocol::kDopamine});
  EXPECT_EQ(dopamine.noop_max_frames, 0);
  EXPECT_EQ(dopamine.sticky, 0.25);
  EXPECT_FALSE(dopamine.discount_lost_lives);
  EXPECT_EQ(ProtocolRules({.sticky = 0.1}).sticky, 0.1);
  EXPECT_EQ(ProtocolRules({.noop_max_frames = 7}).noop_max_frames, 7);
  EXPECT_EQ(ProtocolRules({.frame_size = 64}).frame_size, 64);
  EXPECT_TRUE(ProtocolRules({.episodic_life = true}).episodic_life);
}

}  // namespace
}  // namespace uper
