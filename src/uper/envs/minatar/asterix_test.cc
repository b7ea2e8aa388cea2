#include "uper/envs/minatar/asterix.h"

#include <gtest/gtest.h>

#include "uper/envs/minatar/minatar_for_tests.h"

namespace uper::minatar {
namespace {

class AsterixTest : public testing::Test {
 protected:
  // Every visitor comes from the left into the first empty lane of those after `lane`.
  void Start(bool gold, int lane, bool right = true) {
    driver_.random().Always(DrawPurpose::kVisitorRight, right ? 1 : 0);
    driver_.random().Always(DrawPurpose::kVisitorIsGold, gold ? 1 : 0);
    driver_.random().Always(DrawPurpose::kVisitorLane, lane);
    driver_.Start();
  }

  GameDriver driver_{"asterix"};
};

TEST_F(AsterixTest, StartsAloneInTheMiddle) {
  Start(false, 0);
  EXPECT_EQ(driver_.Cells(Asterix::kPlayer), "5,5");
  EXPECT_EQ(driver_.Count(Asterix::kEnemy) + driver_.Count(Asterix::kGold), 0);
}

TEST_F(AsterixTest, PlayerStaysInRowsOneToEight) {
  Start(false, 0);
  driver_.Act(GameAction::kUp, 6);
  EXPECT_EQ(driver_.Cells(Asterix::kPlayer), "1,5");
  driver_.Act(GameAction::kLeft, 3);
  driver_.Start();
  driver_.Act(GameAction::kLeft, 7);
  EXPECT_EQ(driver_.Cells(Asterix::kPlayer), "5,0");
  driver_.Start();
  driver_.Act(GameAction::kDown, 5);
  driver_.Act(GameAction::kRight, 5);
  EXPECT_EQ(driver_.Cells(Asterix::kPlayer), "8,9");
}

TEST_F(AsterixTest, FirstVisitorComesInStepElevenAndMovesEveryFiveSteps) {
  Start(false, 2);
  driver_.Act(GameAction::kNoOp, 10);
  EXPECT_EQ(driver_.Count(Asterix::kEnemy), 0);
  driver_.Act(GameAction::kNoOp);  // comes at the wall and moves: moves are in steps 6, 11, 16
  EXPECT_EQ(driver_.Cells(Asterix::kEnemy), "3,1");
  EXPECT_EQ(driver_.Cells(Asterix::kTrail), "3,0");
  driver_.Act(GameAction::kNoOp, 4);
  EXPECT_EQ(driver_.Cells(Asterix::kEnemy), "3,1");
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.Cells(Asterix::kEnemy), "3,2");
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kVisitorLane), 1);
}

TEST_F(AsterixTest, FromTheRightTheTrailIsOnTheRight) {
  Start(true, 7, /*right=*/false);
  driver_.Act(GameAction::kNoOp, 11);
  EXPECT_EQ(driver_.Cells(Asterix::kGold), "8,8");
  EXPECT_EQ(driver_.Cells(Asterix::kTrail), "8,9");
  EXPECT_EQ(driver_.Count(Asterix::kEnemy), 0);
}

TEST_F(AsterixTest, EnemyReachesThePlayerAndEndsTheGame) {
  Start(false, 4);  // the player's row 5
  // In column 1 after step 11, one more every five steps: column 5 in step 31.
  EXPECT_EQ(driver_.Act(GameAction::kNoOp, 100), 0);
  EXPECT_TRUE(driver_.over());
  EXPECT_EQ(driver_.steps(), 31);
  EXPECT_EQ(driver_.Cells(Asterix::kPlayer), "5,5");
  EXPECT_TRUE(driver_.Has(5, 5, Asterix::kEnemy));
}

TEST_F(AsterixTest, PlayerWalksIntoTheEnemy) {
  Start(false, 4);
  driver_.Act(GameAction::kNoOp, 11);  // the enemy is in column 1
  driver_.Act(GameAction::kLeft, 3);
  EXPECT_FALSE(driver_.over());
  driver_.Act(GameAction::kLeft);
  EXPECT_TRUE(driver_.over());
}

TEST_F(AsterixTest, GoldPaysOneAndIsGone) {
  Start(true, 4);
  EXPECT_EQ(driver_.Act(GameAction::kNoOp, 30), 0);
  EXPECT_EQ(driver_.Act(GameAction::kNoOp), 1);
  EXPECT_FALSE(driver_.Has(5, 5, Asterix::kGold));
  EXPECT_FALSE(driver_.over());
}

// With one visitor at a time in lane 0 of the empty ones, all gold and out of the way, visitors
// come in steps 11, 21, ..., 101, 111; the ramp of step 102 shortens what follows.
int StepOfVisitor(bool ramping, int number) {
  GameDriver driver("asterix", ramping);
  driver.random().Always(DrawPurpose::kVisitorIsGold, 1);
  driver.Start();
  while (driver.random().Count(DrawPurpose::kVisitorIsGold) < number) driver.Act(GameAction::kNoOp);
  return driver.steps();
}

TEST(AsterixRampTest, AfterHundredTwoStepsVisitorsComeSooner) {
  EXPECT_EQ(StepOfVisitor(true, 11), 111);
  EXPECT_EQ(StepOfVisitor(true, 12), 120);
  EXPECT_EQ(StepOfVisitor(false, 12), 121);
}

TEST(AsterixRampTest, TheSecondRampMakesThemFasterToo) {
  GameDriver driver("asterix");
  driver.random().Always(DrawPurpose::kVisitorRight, 1);
  driver.random().Always(DrawPurpose::kVisitorIsGold, 1);
  driver.Start();
  // Ramps in steps 102 and 204; moves in 6, 11, ..., 201, 206, then every 4 steps.
  const auto moves_in = [&](int step) {
    driver.Act(GameAction::kNoOp, step - 1 - driver.steps());
    const std::string before = driver.Cells(Asterix::kGold);
    driver.Act(GameAction::kNoOp);
    return driver.Cells(Asterix::kGold) != before;
  };
  EXPECT_TRUE(moves_in(206));
  EXPECT_TRUE(moves_in(210));
  EXPECT_TRUE(moves_in(214));
}

TEST(AsterixRampTest, EndsWithAVisitorAndAMoveInEveryStep) {
  GameDriver driver("asterix");
  driver.random().Always(DrawPurpose::kVisitorIsGold, 1);
  driver.Start();
  driver.Act(GameAction::kNoOp, 102 * 9 + 10);
  const int before = driver.random().Count(DrawPurpose::kVisitorRight);
  driver.Act(GameAction::kNoOp, 50);
  EXPECT_EQ(driver.random().Count(DrawPurpose::kVisitorRight) - before, 50);
  const std::string cells = driver.Cells(Asterix::kGold);
  driver.Act(GameAction::kNoOp);
  EXPECT_NE(driver.Cells(Asterix::kGold), cells);
  EXPECT_LT(driver.random().Count(DrawPurpose::kVisitorLane),
            driver.random().Count(DrawPurpose::kVisitorRight))
      << "without an empty lane nobody comes, and no lane is drawn";
}

}  // namespace
}  // namespace uper::minatar
