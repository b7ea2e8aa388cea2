#include "uper/envs/minatar/space_invaders.h"

#include <gtest/gtest.h>

#include "uper/envs/minatar/minatar_for_tests.h"

namespace uper::minatar {
namespace {

class SpaceInvadersTest : public testing::Test {
 protected:
  SpaceInvadersTest() { driver_.Start(); }

  int aliens() const { return driver_.Count(SpaceInvaders::kAlien); }

  GameDriver driver_{"space_invaders"};
};

std::vector<GameAction> PeacefulActions() {
  return {GameAction::kNoOp, GameAction::kLeft, GameAction::kRight};
}

std::vector<GameAction> AllActions() {
  return {GameAction::kNoOp, GameAction::kLeft, GameAction::kRight, GameAction::kFire};
}

TEST_F(SpaceInvadersTest, Starts) {
  EXPECT_EQ(driver_.Cells(SpaceInvaders::kCannon), "9,5");
  EXPECT_EQ(aliens(), 24);
  EXPECT_TRUE(driver_.Has(0, 2, SpaceInvaders::kAlien));
  EXPECT_TRUE(driver_.Has(3, 7, SpaceInvaders::kAlien));
  EXPECT_EQ(driver_.Count(SpaceInvaders::kAlienLeft), 24);
  EXPECT_EQ(driver_.Count(SpaceInvaders::kAlienRight), 0);
}

TEST_F(SpaceInvadersTest, AliensMarchEveryTwelveStepsAndTurnAtTheWall) {
  driver_.Act(GameAction::kLeft, 5);  // out of the way of the bullets
  driver_.Act(GameAction::kNoOp, 7);
  EXPECT_TRUE(driver_.Has(3, 7, SpaceInvaders::kAlien));
  driver_.Act(GameAction::kNoOp);
  EXPECT_FALSE(driver_.Has(3, 7, SpaceInvaders::kAlien)) << "step 13";
  EXPECT_TRUE(driver_.Has(3, 1, SpaceInvaders::kAlien));
  driver_.Start();
  // Step 25 brings them to the wall, step 37 down and round, step 49 to the right.
  driver_.Act(GameAction::kRight, 4);
  const auto at = [&](int step) {
    while (driver_.steps() < step) {
      // Bullets come into the nearest column every ten steps: step aside and back.
      driver_.Act(driver_.steps() % 2 == 0 ? GameAction::kLeft : GameAction::kRight);
    }
    EXPECT_FALSE(driver_.over());
  };
  at(25);
  EXPECT_TRUE(driver_.Has(3, 0, SpaceInvaders::kAlien));
  at(37);
  EXPECT_TRUE(driver_.Has(4, 0, SpaceInvaders::kAlien));
  EXPECT_FALSE(driver_.Has(0, 0, SpaceInvaders::kAlien));
  EXPECT_EQ(driver_.Count(SpaceInvaders::kAlienRight), 24);
  EXPECT_EQ(driver_.Count(SpaceInvaders::kAlienLeft), 0);
}

TEST_F(SpaceInvadersTest, ShotFliesUpAndHitsTheLowestAlien) {
  EXPECT_EQ(driver_.Act(GameAction::kFire, 4), 0);  // one shot in five steps
  EXPECT_EQ(driver_.Cells(SpaceInvaders::kFriendlyBullet), "5,5");
  EXPECT_EQ(driver_.Act(GameAction::kNoOp), 0);
  EXPECT_EQ(driver_.Act(GameAction::kFire), 1);  // step 6: row 3, and the next shot
  EXPECT_FALSE(driver_.Has(3, 5, SpaceInvaders::kAlien));
  EXPECT_EQ(aliens(), 23);
  EXPECT_EQ(driver_.Cells(SpaceInvaders::kFriendlyBullet), "8,5");
}

TEST_F(SpaceInvadersTest, TheNearestAlienShootsInStepEleven) {
  driver_.Act(GameAction::kNoOp, 11);
  EXPECT_EQ(driver_.Cells(SpaceInvaders::kEnemyBullet), "3,5");
  driver_.Act(GameAction::kNoOp, 5);
  EXPECT_FALSE(driver_.over());
  driver_.Act(GameAction::kNoOp);
  EXPECT_TRUE(driver_.over()) << "row 9 in step 17";
}

TEST_F(SpaceInvadersTest, BesideTheAliensTheOutermostColumnShoots) {
  driver_.Act(GameAction::kRight, 4);
  driver_.Act(GameAction::kNoOp, 7);
  EXPECT_EQ(driver_.Cells(SpaceInvaders::kEnemyBullet), "3,7");
}

TEST_F(SpaceInvadersTest, AliensThatComeDownEndTheGame) {
  const auto landed = [&] {
    for (int column = 0; column < 10; ++column) {
      if (driver_.Has(9, column, SpaceInvaders::kAlien)) return true;
    }
    return false;
  };
  ASSERT_TRUE(driver_.SurviveUntil(PeacefulActions(), landed));
  EXPECT_EQ(aliens(), 24);
  // Nine cells to the wall at most and the turn, twelve steps each.
  driver_.Act(GameAction::kNoOp, 120);
  EXPECT_TRUE(driver_.over());
}

// Steps between two moves of a full wave, from the first move seen.
int MarchInterval(GameDriver& driver) {
  const auto position = [&] { return driver.Cells(SpaceInvaders::kAlien); };
  std::string last = position();
  const auto moved = [&] { return position() != last; };
  EXPECT_TRUE(driver.SurviveUntil(PeacefulActions(), moved));
  // From here without going back, so that steps can be counted: dodge by looking.
  for (int steps = 1;; ++steps) {
    last = position();
    const int column = driver.Cells(SpaceInvaders::kCannon).back() - '0';
    const auto danger = [&](int c) {
      return c < 0 || c > 9 || driver.Has(8, c, SpaceInvaders::kEnemyBullet);
    };
    driver.Act(!danger(column)       ? GameAction::kNoOp
               : !danger(column - 1) ? GameAction::kLeft
                                     : GameAction::kRight);
    EXPECT_FALSE(driver.over());
    if (driver.over() || moved()) return steps;
  }
}

int IntervalOfSecondWave(bool ramping) {
  GameDriver driver("space_invaders", ramping);
  driver.Start();
  EXPECT_EQ(MarchInterval(driver), 12);
  int fewest = 24;
  EXPECT_TRUE(driver.SurviveUntil(AllActions(), [&] {
    const int aliens = driver.Count(SpaceInvaders::kAlien);
    if (aliens == 24 && fewest <= 1) return true;
    fewest = aliens;
    return false;
  }));
  EXPECT_TRUE(driver.Has(0, 2, SpaceInvaders::kAlien));
  EXPECT_TRUE(driver.Has(3, 7, SpaceInvaders::kAlien));
  return MarchInterval(driver);
}

TEST(SpaceInvadersWaveTest, TheNextWaveIsOneStepFaster) {
  EXPECT_EQ(IntervalOfSecondWave(true), 11);
  EXPECT_EQ(IntervalOfSecondWave(false), 12);
}

TEST_F(SpaceInvadersTest, FewAliensMarchFaster) {
  for (const int left : {8, 3, 1}) {
    driver_.Start();
    ASSERT_TRUE(driver_.SurviveUntil(AllActions(), [&] { return aliens() == left; }));
    EXPECT_EQ(MarchInterval(driver_), left);
  }
}

}  // namespace
}  // namespace uper::minatar
