// Decisions whose kernels are launched before their frames are known, and learners that share the
// GPU.

#include <chrono>
#include <thread>

#include "uper/engine/cuda/cuda_replay_for_tests.h"
#include "uper/engine/make_device_replay.h"

namespace uper::cuda {
namespace {

using CudaPrelaunchTest = GpuTest;

LearnerSpec AtariSpec(int batch = kBatch) {
  return {.network = NatureNetwork({.actions = 3, .members = 2, .outputs = 4}),
          .loss = {.head = HeadKind::kQuantile},
          .batch = batch};
}

DeviceReplaySpec AtariReplay() {
  DeviceReplaySpec spec = SpecOf(60, 4);
  spec.frame_bytes = 84 * 84;
  spec.observation_bytes = 4 * spec.frame_bytes;
  return spec;
}

// One game that makes all the calls of training to the GPU, sometimes in another order.
class Game {
 public:
  explicit Game(bool prelaunches, int batch = kBatch)
      : prelaunches_(prelaunches),
        store_(AtariReplay()),
        learner_(AtariSpec(batch)),
        replay_(MakeDeviceReplay(AtariReplay(), learner_)) {
    InitializeOnline(learner_);
    store_.Add(20);
    MirrorHost();
  }

  // The values of all decisions, then the parameters.
  std::vector<float> Play(int steps) {
    for (int step = 0; step < steps; ++step) {
      SeeNext();
      if (chance_.Bernoulli(0.1)) AskForSomethingElse();
      if (chance_.Bernoulli(0.001)) {  // longer than kernels wait for a frame
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      if (chance_.Bernoulli(0.1)) {
        KeepStep(step);  // without a decision
      } else {
        Decide(step);
      }
    }
    while (replay_->AwaitReport()) {
    }
    const std::span<const float> online = learner_.State().online;
    found_.insert(found_.end(), online.begin(), online.end());
    return found_;
  }
  int prelaunched() const { return prelaunched_; }

 private:
  void MirrorHost() { replay_->MirrorHost(store_.Transitions(), store_.Frames()); }

  void SeeNext() {
    newest_ = store_.Frames().next_id;
    const std::span<std::byte> pixels = replay_->ReserveFrames(newest_, 1);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = Store::Pixel(newest_, static_cast<int>(i));
    }
  }

  void Decide(int step) {
    const int count = chance_.Bernoulli(0.1) ? 2 : 1;
    std::vector<std::uint32_t> slots;
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < 4; ++j) slots.push_back(store_.SlotAt(newest_ - i, j));
    }
    replay_->BeginDecisions(slots, count);
    KeepStep(step);
    if (prelaunches_) {
      const bool may = learner_.MayPrelaunch();
      replay_->PrelaunchDecision();
      if (may) {
        EXPECT_FALSE(learner_.MayPrelaunch());  // already prelaunched
        ++prelaunched_;
      }
    }
    std::vector<float> q(std::size_t{3} * count);
    replay_->AwaitActionValues(count, q);
    found_.insert(found_.end(), q.begin(), q.end());
  }

  void KeepStep(int step) {
    store_.Add(1);
    MirrorHost();
    if (step % 4 == 0) {
      QueueOne(*replay_, {.importance_exponent = 0.5,
                          .uniforms = Uniforms(uniforms_, learner_.spec().batch)});
    }
    if (step % 50 == 0) {
      while (replay_->AwaitReport()) {
      }
    }
  }

  void AskForSomethingElse() {
    switch (chance_.UniformInt(4)) {
      case 0:
        return learner_.CopyTarget();
      case 1:
        learner_.State();
        return;
      case 2: {
        std::vector<float> priorities(store_.next_id() - store_.first_id());
        double largest = 0;
        return replay_->GetPriorities(priorities, largest);
      }
      default: {
        const std::vector<std::byte> observation(AtariReplay().observation_bytes, std::byte{7});
        std::vector<float> q(3);
        learner_.ActionValues(observation, 1, q);
        found_.insert(found_.end(), q.begin(), q.end());
      }
    }
  }

  const bool prelaunches_;
  Store store_;
  CudaLearner learner_;
  std::unique_ptr<DeviceReplay> replay_;
  RandomStream chance_{5, "what comes next"}, uniforms_{6, "uniforms"};
  std::uint64_t newest_ = 0;
  std::vector<float> found_;
  int prelaunched_ = 0;
};

TEST_F(CudaPrelaunchTest, PrelaunchedDecisionsAreTheSame) {
  constexpr int kSteps = 3000;
  std::vector<float> expected;
  {
    Game plain(false);
    expected = plain.Play(kSteps);
  }
  Game game(true);
  EXPECT_TRUE(SameBits(game.Play(kSteps), expected));
  EXPECT_GT(game.prelaunched(), 0);  // how many depends on the time that decisions take
}

// Updates give the same results once their kernels leave room for other learners.
TEST_F(CudaPrelaunchTest, AnotherLearnerChangesNothing) {
  constexpr int kFew = 40, kSteps = 400;
  constexpr int kManyImages = 32;  // enough for ConvStackTraining if the learner has the GPU alone
  std::vector<float> expected;
  {
    Game alone(false, kManyImages);
    alone.Play(kFew);
    expected = alone.Play(kSteps);
  }
  Game game(false, kManyImages);
  game.Play(kFew);
  const CudaLearner other(AtariSpec());
  EXPECT_TRUE(CudaLearner::shares_gpu());
  EXPECT_TRUE(SameBits(game.Play(kSteps), expected));
}

// A learner that shares the GPU with another learner must not prelaunch.
TEST_F(CudaPrelaunchTest, NotBesideAnotherLearner) {
  const CudaLearner one(AtariSpec());
  EXPECT_TRUE(one.MayPrelaunch());
  {
    const CudaLearner other(AtariSpec());
    EXPECT_FALSE(one.MayPrelaunch());
  }
  EXPECT_TRUE(one.MayPrelaunch());
}

}  // namespace
}  // namespace uper::cuda
