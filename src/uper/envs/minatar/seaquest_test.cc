#include "uper/envs/minatar/seaquest.h"

#include <gtest/gtest.h>

#include "uper/envs/minatar/minatar_for_tests.h"

namespace uper::minatar {
namespace {

class SeaquestTest : public testing::Test {
 protected:
  explicit SeaquestTest(bool ramping = true) : driver_("seaquest", ramping) {
    // Enemies stay out of the way in row 8, divers come from the left into row 1.
    driver_.random().Always(DrawPurpose::kEnemyRow, 7);
    driver_.random().Always(DrawPurpose::kDiverRight, 1);
    driver_.random().Always(DrawPurpose::kDiverRow, 0);
    driver_.Start();
  }

  // To row 1 at the left wall, where a diver comes on board in steps 31, 61, 91, ...
  void WaitForDivers(int last_step) {
    driver_.Act(GameAction::kDown);
    driver_.Act(GameAction::kLeft, 5);
    driver_.Act(GameAction::kNoOp, last_step - driver_.steps());
  }

  GameDriver driver_;
};

class SeaquestWithoutRampingTest : public SeaquestTest {
 protected:
  SeaquestWithoutRampingTest() : SeaquestTest(/*ramping=*/false) {}
};

TEST_F(SeaquestTest, StartsAtTheSurfaceWithFullOxygen) {
  EXPECT_EQ(driver_.Cells(Seaquest::kSubFront), "0,5");
  EXPECT_EQ(driver_.Cells(Seaquest::kSubBack), "0,6");
  EXPECT_EQ(driver_.Count(Seaquest::kOxygenGauge), 10);
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 0);
  driver_.Act(GameAction::kNoOp, 300);
  EXPECT_FALSE(driver_.over()) << "one may stay there";
  EXPECT_EQ(driver_.Count(Seaquest::kOxygenGauge), 10);
}

TEST_F(SeaquestTest, OxygenLastsForTwoHundredSteps) {
  driver_.Act(GameAction::kDown);
  EXPECT_EQ(driver_.Count(Seaquest::kOxygenGauge), 9);  // 199 of 200
  driver_.Act(GameAction::kNoOp, 180);
  EXPECT_EQ(driver_.Count(Seaquest::kOxygenGauge), 0);  // 19 of 200
  driver_.Act(GameAction::kNoOp, 19);
  EXPECT_FALSE(driver_.over());
  driver_.Act(GameAction::kNoOp);
  EXPECT_TRUE(driver_.over());
  EXPECT_EQ(driver_.steps(), 201);
}

TEST_F(SeaquestTest, SurfacingWithoutDiverIsTheEnd) {
  driver_.Act(GameAction::kDown);
  driver_.Act(GameAction::kUp);
  EXPECT_TRUE(driver_.over());
}

TEST_F(SeaquestTest, SurfacingWithOneDiverUsesHimUp) {
  WaitForDivers(31);
  EXPECT_EQ(driver_.Cells(Seaquest::kDiverGauge), "9,8");
  EXPECT_EQ(driver_.Count(Seaquest::kDiver), 0);
  EXPECT_EQ(driver_.Act(GameAction::kUp), 0);
  EXPECT_FALSE(driver_.over());
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 0);
  EXPECT_EQ(driver_.Count(Seaquest::kOxygenGauge), 10);
  driver_.Act(GameAction::kDown);
  driver_.Act(GameAction::kUp);
  EXPECT_TRUE(driver_.over());
}

TEST_F(SeaquestTest, SurfacingWithSixDiversPaysForTheOxygenLeft) {
  // The first two divers of steps 31 and 61 are met after waiting at the surface, where no oxygen
  // is used: the first one in column 9 in step 84, the second one in column 4 in step 89.
  driver_.Act(GameAction::kRight, 4);
  driver_.Act(GameAction::kNoOp, 79);
  driver_.Act(GameAction::kDown);
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 1);
  driver_.Act(GameAction::kLeft, 5);
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 2);
  driver_.Act(GameAction::kLeft, 4);  // step 93; the third one is there since step 91
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 3);
  driver_.Act(GameAction::kNoOp, 181 - 93);
  EXPECT_EQ(driver_.Cells(Seaquest::kDiverGauge), "9,3 9,4 9,5 9,6 9,7 9,8");
  EXPECT_EQ(driver_.Count(Seaquest::kOxygenGauge), 5);  // 98 steps below: 102 of 200
  EXPECT_EQ(driver_.Act(GameAction::kUp), 5);
  EXPECT_FALSE(driver_.over());
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 0);
  // There are -1 divers now, and surfacing is free.
  for (int i = 0; i < 3; ++i) {
    driver_.Act(GameAction::kDown);
    EXPECT_EQ(driver_.Act(GameAction::kUp), 0);
    EXPECT_FALSE(driver_.over());
  }
}

TEST_F(SeaquestTest, SixDiversAreAllThereIsRoomFor) {
  WaitForDivers(181);
  EXPECT_EQ(driver_.Count(Seaquest::kDiverGauge), 6);
  EXPECT_EQ(driver_.Act(GameAction::kUp), 0);  // 19 of 200: less than a tenth
  EXPECT_FALSE(driver_.over());
}

TEST_F(SeaquestTest, DiverMovesEverySixSteps) {
  driver_.Act(GameAction::kNoOp, 31);
  EXPECT_EQ(driver_.Cells(Seaquest::kDiver), "1,0");
  EXPECT_EQ(driver_.Count(Seaquest::kTrail), driver_.Count(Seaquest::kEnemyFish));
  driver_.Act(GameAction::kNoOp, 4);
  EXPECT_EQ(driver_.Cells(Seaquest::kDiver), "1,0");
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.Cells(Seaquest::kDiver), "1,1");
  EXPECT_TRUE(driver_.Has(1, 0, Seaquest::kTrail));
}

TEST_F(SeaquestTest, OneTorpedoInFiveSteps) {
  driver_.Act(GameAction::kFire);
  EXPECT_EQ(driver_.Cells(Seaquest::kFriendlyBullet), "0,4");
  driver_.Act(GameAction::kFire, 4);
  EXPECT_EQ(driver_.Cells(Seaquest::kFriendlyBullet), "0,0");
  driver_.Act(GameAction::kFire);
  EXPECT_EQ(driver_.Cells(Seaquest::kFriendlyBullet), "0,4") << "the first one is gone";
  driver_.Act(GameAction::kRight);
  driver_.Act(GameAction::kNoOp, 4);
  driver_.Act(GameAction::kFire);
  EXPECT_EQ(driver_.Cells(Seaquest::kFriendlyBullet), "0,7") << "the way the submarine looks";
}

TEST_F(SeaquestTest, TorpedoHitsAFish) {
  driver_.random().Always(DrawPurpose::kEnemyRow, 0);  // row 1, from the right in step 21
  driver_.Act(GameAction::kRight);
  driver_.Act(GameAction::kLeft);
  driver_.Act(GameAction::kDown);
  driver_.Act(GameAction::kRight);     // (1, 6), looking right
  driver_.Act(GameAction::kNoOp, 18);  // step 22: the fish in column 9
  EXPECT_EQ(driver_.Cells(Seaquest::kEnemyFish), "1,9");
  EXPECT_EQ(driver_.Act(GameAction::kFire), 0);  // column 7
  EXPECT_EQ(driver_.Act(GameAction::kNoOp), 0);  // 8
  EXPECT_EQ(driver_.Act(GameAction::kNoOp), 1);  // 9
  EXPECT_EQ(driver_.Count(Seaquest::kEnemyFish), 0);
  EXPECT_EQ(driver_.Count(Seaquest::kFriendlyBullet), 0);
}

TEST_F(SeaquestTest, FishReachesThePlayer) {
  driver_.random().Always(DrawPurpose::kEnemyRow, 0);
  driver_.Act(GameAction::kRight, 4);
  driver_.Act(GameAction::kLeft);
  driver_.Act(GameAction::kDown);  // (1, 8)
  driver_.Act(GameAction::kNoOp, 19);
  EXPECT_FALSE(driver_.over());
  driver_.Act(GameAction::kNoOp);  // the fish of step 21 moves in step 26
  EXPECT_EQ(driver_.steps(), 26);
  EXPECT_TRUE(driver_.over());
}

TEST_F(SeaquestTest, EnemySubmarineShootsEveryElevenSteps) {
  driver_.random().Always(DrawPurpose::kEnemyRight, 1);
  driver_.random().Always(DrawPurpose::kEnemyIsSub, 1);
  driver_.Act(GameAction::kNoOp, 30);
  EXPECT_EQ(driver_.Cells(Seaquest::kEnemySub), "8,1");
  EXPECT_EQ(driver_.Count(Seaquest::kEnemyBullet), 0);
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.Cells(Seaquest::kEnemyBullet), "8,2");
  driver_.Act(GameAction::kNoOp, 7);
  EXPECT_EQ(driver_.Cells(Seaquest::kEnemyBullet), "8,9");
  driver_.Act(GameAction::kNoOp, 3);
  EXPECT_EQ(driver_.Count(Seaquest::kEnemyBullet), 0);
  driver_.Act(GameAction::kNoOp);  // step 42, from column 3: moves in 26, 32, 38
  EXPECT_EQ(driver_.Cells(Seaquest::kEnemyBullet), "8,4");
}

TEST_F(SeaquestTest, BulletReachesThePlayer) {
  driver_.random().Always(DrawPurpose::kEnemyRight, 1);
  driver_.random().Always(DrawPurpose::kEnemyIsSub, 1);
  driver_.random().Always(DrawPurpose::kDiverRow, 3);
  driver_.Act(GameAction::kDown, 8);
  driver_.Act(GameAction::kNoOp, 100);  // (8, 5): the bullet of step 31 is in column 2 then
  EXPECT_TRUE(driver_.over());
  EXPECT_EQ(driver_.steps(), 34);
}

TEST_F(SeaquestTest, NobodyComesIntoARowAgainstTheTraffic) {
  driver_.random().Always(DrawPurpose::kEnemyRight, 1);
  driver_.Act(GameAction::kNoOp, 21);
  driver_.random().Always(DrawPurpose::kEnemyRight, 0);
  driver_.Act(GameAction::kNoOp, 20);
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kEnemyRow), 2);
  EXPECT_EQ(driver_.Count(Seaquest::kEnemyFish), 1);
}

TEST_F(SeaquestTest, SurfacingMakesEnemiesComeSooner) {
  WaitForDivers(31);
  driver_.Act(GameAction::kUp);  // the enemy after next, due in step 61, comes in step 60
  driver_.Act(GameAction::kNoOp, 59 - 32);
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kEnemyRow), 2);
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kEnemyRow), 3);
}

TEST_F(SeaquestWithoutRampingTest, SurfacingChangesNothing) {
  WaitForDivers(31);
  driver_.Act(GameAction::kUp);
  driver_.Act(GameAction::kNoOp, 60 - 32);
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kEnemyRow), 2);
  driver_.Act(GameAction::kNoOp);
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kEnemyRow), 3);
}

}  // namespace
}  // namespace uper::minatar
