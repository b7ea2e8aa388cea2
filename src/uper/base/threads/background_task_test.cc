#include "uper/base/threads/background_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace uper {
namespace {

TEST(BackgroundTaskTest, RunsOneFunctionAfterTheOther) {
  BackgroundTask task;
  task.Wait();  // nothing to wait for
  int sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    task.Start([&sum, i] { sum += i; });
    task.Wait();
  }
  EXPECT_EQ(sum, 500'500);
}

TEST(BackgroundTaskTest, RunsBesideItsOwner) {
  BackgroundTask task;
  std::atomic<bool> go = false;
  task.Start([&go] { go.wait(false); });
  EXPECT_TRUE(task.busy());
  EXPECT_THROW(task.Start([] {}), std::exception);  // one at a time
  go = true;
  go.notify_all();
  task.Wait();
  EXPECT_FALSE(task.busy());
}

TEST(BackgroundTaskTest, HandsAnExceptionToTheWaiterOnce) {
  BackgroundTask task;
  task.Start([] { throw std::runtime_error("broken"); });
  EXPECT_THROW(task.Wait(), std::runtime_error);
  task.Wait();
  int calls = 0;
  task.Start([&calls] { ++calls; });
  task.Wait();
  EXPECT_EQ(calls, 1);
}

TEST(BackgroundTaskTest, TheDestructorWaits) {
  int calls = 0;
  {
    BackgroundTask task;
    task.Start([&calls] { ++calls; });
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace uper
