#include "uper/envs/minatar/freeway.h"

#include <gtest/gtest.h>

#include "uper/envs/minatar/minatar_for_tests.h"

namespace uper::minatar {
namespace {

class FreewayTest : public testing::Test {
 protected:
  // All cars alike: interval 1 to 5.
  void Start(int interval, bool left) {
    driver_.random().Always(DrawPurpose::kCarSpeed, interval - 1);
    driver_.random().Always(DrawPurpose::kCarGoesLeft, left ? 1 : 0);
    driver_.Start();
  }

  GameDriver driver_{"freeway"};
};

TEST_F(FreewayTest, Starts) {
  Start(5, false);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
  EXPECT_EQ(driver_.Cells(Freeway::kCar), "1,0 2,0 3,0 4,0 5,0 6,0 7,0 8,0");
  EXPECT_EQ(driver_.Cells(Freeway::kSpeed5), "1,9 2,9 3,9 4,9 5,9 6,9 7,9 8,9");
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kCarSpeed), 8);
}

TEST_F(FreewayTest, SpeedIsShownInItsChannelBehindTheCar) {
  for (int interval = 1; interval <= 5; ++interval) {
    Start(interval, true);
    for (int channel = Freeway::kSpeed1; channel <= Freeway::kSpeed5; ++channel) {
      const int expected = channel == Freeway::kSpeed1 + interval - 1 ? 8 : 0;
      EXPECT_EQ(driver_.Count(channel), expected);
    }
    driver_.Act(GameAction::kNoOp, interval);
    EXPECT_TRUE(driver_.Has(1, 0, Freeway::kCar)) << "moves every interval + 1 steps";
    driver_.Act(GameAction::kNoOp);
    EXPECT_TRUE(driver_.Has(1, 9, Freeway::kCar)) << "and comes back at the other side";
    EXPECT_TRUE(driver_.Has(1, 0, Freeway::kSpeed1 + interval - 1));
  }
}

TEST_F(FreewayTest, ChickenWalksEveryThreeSteps) {
  Start(5, true);
  driver_.Act(GameAction::kUp, 3);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
  driver_.Act(GameAction::kUp);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "8,4");
  driver_.Act(GameAction::kUp, 2);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "8,4");
  driver_.Act(GameAction::kDown);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
  driver_.Act(GameAction::kNoOp, 2);
  driver_.Act(GameAction::kDown);  // in the bottom row: stays there, but starts the pause
  driver_.Act(GameAction::kUp, 2);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
  driver_.Act(GameAction::kUp);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "8,4");
}

TEST_F(FreewayTest, TheTopPaysOneAndTheTrafficIsDrawnAnew) {
  Start(5, true);  // slow cars from the far side: not in column 4 before step 36
  driver_.random().Always(DrawPurpose::kCarSpeed, 1);
  EXPECT_EQ(driver_.Act(GameAction::kUp, 27), 0);  // walks in steps 4, 7, ..., 25, 28
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "1,4");
  EXPECT_EQ(driver_.Act(GameAction::kUp), 1);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kCarSpeed), 16);
  EXPECT_EQ(driver_.random().Count(DrawPurpose::kCarGoesLeft), 16);
  EXPECT_TRUE(driver_.Has(1, 6, Freeway::kCar)) << "cars stay where they are";
  EXPECT_EQ(driver_.Count(Freeway::kSpeed2), 8);
  EXPECT_EQ(driver_.Count(Freeway::kSpeed5), 0);
}

TEST_F(FreewayTest, ACarSendsTheChickenBack) {
  Start(5, false);  // all cars come into column 4 in step 24, the chicken is in row 2 then
  driver_.Act(GameAction::kUp, 23);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "2,4");
  EXPECT_EQ(driver_.Act(GameAction::kUp), 0);
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
  driver_.Act(GameAction::kUp);  // step 25 into a car that stands there
  EXPECT_EQ(driver_.Cells(Freeway::kChicken), "9,4");
}

TEST_F(FreewayTest, LastsTwoThousandFiveHundredAndOneSteps) {
  Start(1, false);
  driver_.Act(GameAction::kNoOp, 2500);
  EXPECT_FALSE(driver_.over());
  driver_.Act(GameAction::kNoOp);
  EXPECT_TRUE(driver_.over());
}

}  // namespace
}  // namespace uper::minatar
