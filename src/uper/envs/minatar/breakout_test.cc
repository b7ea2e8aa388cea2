#include "uper/envs/minatar/breakout.h"

#include <gtest/gtest.h>

#include "uper/envs/minatar/minatar_for_tests.h"

namespace uper::minatar {
namespace {

class BreakoutTest : public testing::Test {
 protected:
  // The ball starts at the left wall and comes to (8, 5) in step 5.
  BreakoutTest() { driver_.Start(); }

  GameDriver driver_{"breakout"};
};

TEST_F(BreakoutTest, Starts) {
  EXPECT_EQ(driver_.Cells(Breakout::kPaddle), "9,4");
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "3,0");
  EXPECT_EQ(driver_.Cells(Breakout::kTrail), "3,0");
  EXPECT_EQ(driver_.Count(Breakout::kBrick), 30);
  EXPECT_TRUE(driver_.Has(1, 0, Breakout::kBrick));
  EXPECT_TRUE(driver_.Has(3, 9, Breakout::kBrick));
  driver_.random().Always(DrawPurpose::kBallSide, 1);
  driver_.Start();
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "3,9");
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "4,8");
}

TEST_F(BreakoutTest, BallBesideThePaddleEndsTheGame) {
  driver_.Act(GameAction::kNoOp, 5);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "8,5");
  EXPECT_EQ(driver_.Cells(Breakout::kTrail), "7,4");
  EXPECT_FALSE(driver_.over());
  driver_.Act(GameAction::kNoOp);
  EXPECT_TRUE(driver_.over());
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "9,6");
}

TEST_F(BreakoutTest, FromAboveTheBallFliesOnUpwardsAndHitsABrick) {
  driver_.Act(GameAction::kRight);
  driver_.Act(GameAction::kNoOp, 5);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "8,6");
  driver_.Act(GameAction::kNoOp, 3);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "5,9");
  driver_.Act(GameAction::kNoOp);  // at the wall the ball does not move sideways
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "4,9");
  EXPECT_EQ(driver_.Act(GameAction::kNoOp), 1);  // the brick at (3, 8) stops the move up
  EXPECT_FALSE(driver_.Has(3, 8, Breakout::kBrick));
  EXPECT_EQ(driver_.Count(Breakout::kBrick), 29);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "4,8");
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "5,7");
}

TEST_F(BreakoutTest, FromTheSideTheBallGoesBackWhereItCameFrom) {
  driver_.Act(GameAction::kRight, 2);
  driver_.Act(GameAction::kNoOp, 4);
  EXPECT_FALSE(driver_.over());
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "8,6");
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.Cells(Breakout::kBall), "7,5");
}

TEST_F(BreakoutTest, PaddleStaysOnTheBoard) {
  driver_.Act(GameAction::kLeft, 5);
  EXPECT_EQ(driver_.Cells(Breakout::kPaddle), "9,0");
  driver_.Start();
  driver_.Act(GameAction::kFire);
  driver_.Act(GameAction::kUp);
  EXPECT_EQ(driver_.Cells(Breakout::kPaddle), "9,4");
}

TEST_F(BreakoutTest, BricksComeBackWhenAllAreGoneAndTheBallIsDown) {
  const std::vector<GameAction> actions = {GameAction::kNoOp, GameAction::kLeft,
                                           GameAction::kRight};
  ASSERT_TRUE(driver_.SurviveUntil(actions, [&] { return driver_.Count(Breakout::kBrick) == 0; }));
  bool was_above_the_bottom = false;
  ASSERT_TRUE(driver_.SurviveUntil(actions, [&] {
    if (driver_.Count(Breakout::kBrick) > 0) return true;
    // The row in which the ball is met by the paddle in the next step.
    was_above_the_bottom = driver_.Cells(Breakout::kBall).front() == '8';
    return false;
  }));
  EXPECT_TRUE(was_above_the_bottom);
  EXPECT_EQ(driver_.Count(Breakout::kBrick), 30);
}

}  // namespace
}  // namespace uper::minatar
