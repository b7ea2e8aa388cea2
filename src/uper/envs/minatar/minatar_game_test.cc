#include "uper/envs/minatar/minatar_game.h"

#include <gtest/gtest.h>

#include <deque>

#include "uper/base/error.h"
#include "uper/envs/minatar/bit_board.h"

namespace uper::minatar {
namespace {

using Bytes = std::vector<std::byte>;

// A game with its own random draws, saved and restored together.
class Table {
 public:
  explicit Table(const std::string& name)
      : game_(MakeGame(name, true)), random_(RandomStream(3, "table")) {
    game_->Start(random_);
  }

  Bytes Save() const {
    Bytes state;
    ByteWriter writer(state);
    random_.Save(writer);
    game_->Save(writer);
    return state;
  }
  void Restore(const Bytes& state) {
    ByteReader reader(state);
    random_.Restore(reader);
    game_->Restore(reader);
    reader.ExpectEnd();
    over_ = false;
  }
  // The frame after the action, the reward behind it.
  Bytes Act(GameAction action) {
    const GameStep step = game_->Act(action, random_);
    over_ = step.over;
    Bytes frame(std::size_t{100} * game_->channels());
    Frame canvas(frame, game_->channels());
    game_->Draw(canvas);
    frame.push_back(static_cast<std::byte>(step.reward));
    return frame;
  }
  GameAction RandomAction(RandomStream& policy) const {
    const auto actions = game_->minimal_actions();
    return actions[policy.UniformInt(actions.size())];
  }
  bool over() const { return over_; }

 private:
  std::unique_ptr<MinAtarGame> game_;
  StreamGameRandom random_;
  bool over_ = false;
};

// Plays random actions until `count` are done or the game is over.
std::vector<GameAction> PlayRandomly(Table& table, int count, RandomStream& policy,
                                     std::vector<Bytes>& frames) {
  std::vector<GameAction> actions;
  while (static_cast<int>(actions.size()) < count && !table.over()) {
    actions.push_back(table.RandomAction(policy));
    frames.push_back(table.Act(actions.back()));
  }
  return actions;
}

class EveryGameTest : public testing::TestWithParam<std::string> {};

// Restores an earlier state whenever the game is over, and so gets much deeper than random play.
TEST_P(EveryGameTest, RestoredStatesContinueAlikeDeepInTheGame) {
  Table original(GetParam());
  RandomStream policy(5, "policy");
  std::deque<Bytes> past = {original.Save()};
  for (int chunk = 0; chunk < 20'000; ++chunk) {
    std::vector<Bytes> frames;
    const auto actions =
        PlayRandomly(original, 1 + static_cast<int>(policy.UniformInt(8)), policy, frames);
    Table copy(GetParam());  // gets nothing but the state
    copy.Restore(past.back());
    ASSERT_EQ(copy.Save(), past.back());
    for (std::size_t i = 0; i < actions.size(); ++i) ASSERT_EQ(copy.Act(actions[i]), frames[i]);
    if (original.over()) {
      while (past.size() > 1 && policy.Bernoulli(0.5)) past.pop_back();
      original.Restore(past.back());
    } else {
      past.push_back(original.Save());
    }
  }
}

// Fields whose range leaves room for a flip of 64: the position of the stream (8 bytes), the rows
// of bit boards (a byte each) and counters beyond 64.
int RoomForFlips(const std::string& name) {
  if (name == "breakout") return 8 + 10;
  if (name == "space_invaders") return 8 + 30;
  return 8 + 1;
}

TEST_P(EveryGameTest, StatesOutOfRangeAreRefused) {
  Table original(GetParam());
  RandomStream policy(6, "policy");
  for (int point = 0; point < 300; ++point) {
    std::vector<Bytes> frames;
    const Bytes state = original.Save();
    PlayRandomly(original, 4, policy, frames);
    if (original.over()) original.Restore(state);
    int accepted = 0;
    for (std::size_t i = 0; i < state.size(); ++i) {
      Bytes damaged = state;
      damaged[i] ^= std::byte{64};
      try {
        Table(GetParam()).Restore(damaged);
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
      }
    }
    ASSERT_LE(accepted, RoomForFlips(GetParam()));
  }
}

TEST_P(EveryGameTest, MinimalActionsAreOrderedAndStartWithNoOp) {
  const auto minimal = MakeGame(GetParam(), true)->minimal_actions();
  EXPECT_EQ(minimal.front(), GameAction::kNoOp);
  for (std::size_t i = 1; i < minimal.size(); ++i) EXPECT_LT(minimal[i - 1], minimal[i]);
}

INSTANTIATE_TEST_SUITE_P(Games, EveryGameTest, testing::ValuesIn(GameNames()));

TEST(MakeGameTest, ChannelsAndActionsAreThePublishedOnes) {
  const auto expect = [](const std::string& name, int channels, std::size_t actions) {
    const auto game = MakeGame(name, true);
    EXPECT_EQ(game->channels(), channels) << name;
    EXPECT_EQ(game->minimal_actions().size(), actions) << name;
  };
  expect("asterix", 4, 5);
  expect("breakout", 4, 3);
  expect("freeway", 7, 3);
  expect("seaquest", 10, 6);
  expect("space_invaders", 6, 4);
  EXPECT_THROW(MakeGame("pong", true), Error);
}

TEST(BitBoardTest, ShiftsDropWhatLeavesAndRotationKeepsIt) {
  BitBoard board;
  board.AddBlock(0, 10, 0, 10);
  EXPECT_EQ(board.Count(), 100);
  board.ShiftUp();
  EXPECT_FALSE(board.HasInRow(9));
  board.ShiftLeft();
  EXPECT_FALSE(board.HasInColumn(9));
  EXPECT_EQ(board.Count(), 81);
  board.ShiftRight();
  EXPECT_FALSE(board.HasInColumn(0));
  EXPECT_EQ(board.Count(), 81);
  board.ShiftRight();
  EXPECT_EQ(board.Count(), 72);
  board.ShiftDown();
  EXPECT_FALSE(board.HasInRow(0));
  EXPECT_EQ(board.Count(), 72);
  board.RotateDown();
  EXPECT_TRUE(board.HasInRow(0));
  EXPECT_EQ(board.Count(), 72);
}

TEST(BitBoardTest, SetOperations) {
  BitBoard board;
  EXPECT_TRUE(board.IsEmpty());
  board.Add(2, 3);
  board.Add(7, 3);
  EXPECT_EQ(board.LowestInColumn(3), 7);
  BitBoard other;
  other.Add(7, 3);
  other.Add(7, 4);
  const BitBoard both = board.Intersection(other);
  EXPECT_EQ(both.Count(), 1);
  EXPECT_TRUE(both.Has(7, 3));
  board.Remove(both);
  EXPECT_FALSE(board.Has(7, 3));
  board.Remove(2, 3);
  EXPECT_TRUE(board.IsEmpty());
}

}  // namespace
}  // namespace uper::minatar
