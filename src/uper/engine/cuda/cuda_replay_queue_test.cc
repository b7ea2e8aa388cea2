// Updates and decisions that are queued behind or beside each other.

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "uper/engine/cuda/cuda_replay_for_tests.h"

namespace uper::cuda {
namespace {

using CudaReplayQueueTest = GpuTest;

// Updates that are queued without waiting equal updates that are awaited one by one.
TEST_F(CudaReplayQueueTest, QueuedUpdatesAreThoseThatAreWaitedFor) {
  const DeviceReplaySpec spec = SpecOf(300, 3);
  Pair waited(spec, 3), queued(spec, 3);
  for (Pair* pair : {&waited, &queued}) {
    pair->Add(200);
    pair->MirrorHost();
  }
  RandomStream a(11, "uniforms"), b(11, "uniforms");
  std::vector<double> losses;
  for (int i = 0; i < 150; ++i) {
    if (i == 40) waited.gpu.CopyTarget();
    QueueOne(*waited.replay, {.importance_exponent = 0.5, .uniforms = Uniforms(a)});
    losses.push_back(waited.replay->AwaitReport()->loss);
  }
  std::size_t reported = 0;
  for (int i = 0; i < 150; ++i) {
    if (i == 40) queued.gpu.CopyTarget();
    if (i >= 64) {
      ASSERT_EQ(queued.replay->AwaitReport()->loss, losses[reported++]);
    }
    QueueOne(*queued.replay, {.importance_exponent = 0.5, .uniforms = Uniforms(b)});
  }
  while (const auto report = queued.replay->AwaitReport()) {
    ASSERT_EQ(report->loss, losses[reported++]);
  }
  EXPECT_EQ(reported, losses.size());
  EXPECT_TRUE(std::ranges::equal(waited.gpu.State().online, queued.gpu.State().online));
  EXPECT_EQ(queued.gpu.updates(), 150);
}

// Several updates in one graph equal single updates, though each batch is drawn before the previous
// update has ended.
TEST_F(CudaReplayQueueTest, UpdatesAtOnceAreThoseOneByOne) {
  const DeviceReplaySpec spec = SpecOf(300, 3);
  Pair single(spec, 3), several(spec, 3);
  RandomStream a(12, "uniforms"), b(12, "uniforms");
  for (const int count : {1, 2, 3, DeviceReplay::kMaxUpdatesPerCall, 4, 1, 5}) {
    for (Pair* pair : {&single, &several}) {
      pair->Add(40);  // later transitions wrap around the ring
      pair->MirrorHost();
    }
    std::vector<std::vector<double>> uniforms;
    std::vector<DeviceUpdate> updates;
    for (int i = 0; i < count; ++i) uniforms.push_back(Uniforms(b));
    for (int i = 0; i < count; ++i) {
      updates.push_back({.importance_exponent = 0.1 * i, .uniforms = uniforms[i]});
    }
    several.replay->QueueUpdates(updates);
    for (int i = 0; i < count; ++i) {
      QueueOne(*single.replay, {.importance_exponent = 0.1 * i, .uniforms = Uniforms(a)});
      const DeviceUpdateReport expected = *single.replay->AwaitReport();
      const DeviceUpdateReport report = *several.replay->AwaitReport();
      ASSERT_EQ(report.loss, expected.loss) << i << " of " << count;
      EXPECT_EQ(report.gradient_norm, expected.gradient_norm);
      EXPECT_TRUE(std::ranges::equal(report.ids, expected.ids));
      EXPECT_TRUE(std::ranges::equal(report.weights, expected.weights));
      EXPECT_TRUE(std::ranges::equal(report.td_error, expected.td_error));
    }
  }
  EXPECT_TRUE(std::ranges::equal(single.gpu.State().online, several.gpu.State().online));
  EXPECT_EQ(several.gpu.updates(), single.gpu.updates());
  std::vector<float> priorities(several.buffer.size()), expected(single.buffer.size());
  double largest = 0, expected_largest = 0;
  several.replay->GetPriorities(priorities, largest);
  single.replay->GetPriorities(expected, expected_largest);
  EXPECT_EQ(priorities, expected);
  EXPECT_EQ(largest, expected_largest);
}

// Each update reports its own draw.
TEST_F(CudaReplayQueueTest, OnlyDrawsWithoutMassAreReportedSo) {
  const DeviceReplaySpec spec = SpecOf(1, 0);
  Pair pair(spec, 1);
  pair.Add(1);
  pair.MirrorHost();
  pair.replay->SetPriorities(std::vector<float>(1, 0.0F), 1);
  const std::vector<double> uniforms(kBatch, 0.5);
  const std::vector<DeviceUpdate> updates(2, {.importance_exponent = 1, .uniforms = uniforms});
  pair.replay->QueueUpdates(updates);
  EXPECT_TRUE(pair.replay->AwaitReport()->uniform_fallback);
  EXPECT_FALSE(pair.replay->AwaitReport()->uniform_fallback);
}

TEST_F(CudaReplayQueueTest, ActsOnStoredFrames) {
  const DeviceReplaySpec spec = SpecOf(50, 4);
  Pair pair(spec, 4);
  pair.Add(70);  // wraps around the ring
  pair.MirrorHost();
  const std::vector<std::uint64_t> ids = {69, 30, 60};
  std::vector<std::uint32_t> slots;
  for (const std::uint64_t id : ids) {
    for (int j = 0; j < 4; ++j) slots.push_back(pair.store.SlotAt(id, j));
  }
  slots[0] = FrameStore::kZeroSlot;
  Store::Batch batch = pair.store.Gather(ids);
  std::fill_n(batch.s_tm1.begin(), kPixels, std::byte{0});
  std::vector<float> q(9), expected(9);
  pair.gpu.ActionValues(batch.s_tm1, 3, expected);
  pair.replay->BeginDecisions(slots, 3);
  QueueOne(*pair.replay,
           {.uniforms = std::vector<double>(kBatch, 0.5)});  // comes too late to matter
  pair.replay->AwaitActionValues(3, q);
  EXPECT_EQ(q, expected);
}

// While this object lives, work that is enqueued on the stream after it does not begin. The hold
// ends after a second, because the test must also end under tools that wait for every kernel.
// `flag` must live until the stream has been awaited.
class Hold {
 public:
  Hold(cudaStream_t stream, std::atomic<bool>& flag) : flag_(flag) {
    flag_ = true;
    CheckCuda(cudaLaunchHostFunc(stream, AwaitEnd, &flag), "cudaLaunchHostFunc");
  }
  ~Hold() { flag_ = false; }

 private:
  static void AwaitEnd(void* flag) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (*static_cast<std::atomic<bool>*>(flag) && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }
  std::atomic<bool>& flag_;
};

// Many decisions before updates change nothing. This holds for decisions that are launched at once.
// It also holds for decisions that join the updates while the GPU is busy; meanwhile new
// transitions are appended and a batch is drawn.
TEST_F(CudaReplayQueueTest, ManyDecisionsDoNotMatter) {
  const DeviceReplaySpec spec = SpecOf(60, 4);
  std::atomic<bool> held{false};
  Pair acting(spec, 4), quiet(spec, 4);
  RandomStream a(13, "uniforms"), b(13, "uniforms");
  const auto add = [&](int count) {
    for (Pair* pair : {&acting, &quiet}) {
      pair->Add(count);
      pair->MirrorHost();
    }
  };
  constexpr int kDecisions = 6;
  std::vector<float> q(3 * kDecisions), expected(q.size());
  for (int round = 0; round < 30; ++round) {
    const bool busy = round % 3 > 0, learns = round % 5 > 0;
    add(7);
    std::vector<std::uint64_t> ids;
    std::vector<std::uint32_t> slots;
    for (int i = 0; i < kDecisions; ++i) {
      ids.push_back(acting.buffer.next_id() - 1 - i);  // some of them new
      for (int j = 0; j < 4; ++j) slots.push_back(acting.store.SlotAt(ids.back(), j));
    }
    if (busy) QueueOne(*quiet.replay, {.uniforms = Uniforms(b)});
    quiet.gpu.ActionValues(acting.store.Gather(ids).s_tm1, kDecisions, expected);
    {
      std::optional<Hold> hold;
      if (busy) {
        hold.emplace(acting.gpu.stream(), held);
        QueueOne(*acting.replay, {.uniforms = Uniforms(a)});
        add(2);
      }
      acting.replay->BeginDecisions(slots, kDecisions);
      for (const bool acts : {true, false}) {
        if (!learns) continue;
        const std::vector<double> first = Uniforms(acts ? a : b), second = Uniforms(acts ? a : b);
        const DeviceUpdate updates[] = {{.importance_exponent = 0.5, .uniforms = first},
                                        {.importance_exponent = 0.7, .uniforms = second}};
        (acts ? acting : quiet).replay->QueueUpdates(updates);
      }
    }
    acting.replay->AwaitActionValues(kDecisions, q);
    EXPECT_EQ(q, expected) << round;
    while (const auto report = acting.replay->AwaitReport()) {
      const DeviceUpdateReport same = *quiet.replay->AwaitReport();
      ASSERT_EQ(report->loss, same.loss) << round;
      ASSERT_TRUE(std::ranges::equal(report->ids, same.ids)) << round;
    }
  }
  EXPECT_TRUE(std::ranges::equal(acting.gpu.State().online, quiet.gpu.State().online));
}

// Frames that are written to reserved memory before they are stored: decisions see them, and they
// are not read again. At the end the memory is the same.
TEST_F(CudaReplayQueueTest, ReservedFramesAreSeenAndKept) {
  const DeviceReplaySpec spec = SpecOf(60, 4);
  Pair reserving(spec, 4), plain(spec, 4);
  for (Pair* pair : {&reserving, &plain}) {
    pair->Add(3);
    pair->MirrorHost();
  }
  RandomStream a(17, "uniforms"), b(17, "uniforms");
  const auto decide = [&](std::uint64_t newest) {
    const std::vector<std::uint64_t> ids = {newest, newest - 2};
    std::vector<std::uint32_t> slots;
    for (const std::uint64_t id : ids) {
      for (int j = 0; j < 4; ++j) slots.push_back(reserving.store.SlotAt(id, j));
    }
    std::vector<float> q(6), expected(6);
    reserving.replay->BeginDecisions(slots, 2);
    reserving.replay->AwaitActionValues(2, q);
    plain.gpu.ActionValues(reserving.store.Gather(ids).s_tm1, 2, expected);
    EXPECT_EQ(q, expected) << newest;
  };
  const auto add = [&](int count) {
    for (Pair* pair : {&reserving, &plain}) pair->Add(count);
    plain.MirrorHost();
    DeviceRecordSource frames = reserving.store.Frames();
    frames.read = [](std::uint64_t, std::uint64_t, std::span<std::byte>) { ADD_FAILURE(); };
    reserving.replay->MirrorHost(reserving.store.Transitions(), frames);
  };
  for (int round = 0; round < 40; ++round) {  // wraps around the ring
    const int count = 4 + round % 3;
    const std::uint64_t first = reserving.store.Frames().next_id;
    const std::span<std::byte> pixels = reserving.replay->ReserveFrames(first, count);
    ASSERT_EQ(pixels.size(), std::size_t{1} * count * kPixels);
    for (int i = 0; i < count * kPixels; ++i) {
      pixels[i] = Store::Pixel(first + i / kPixels, i % kPixels);
    }
    decide(first + count - 1);
    add(1 + round % 2);  // some of them
    decide(first + count - 1);
    add(count - 1 - round % 2);
    decide(first + count - 1);
    QueueOne(*reserving.replay, {.importance_exponent = 0.5, .uniforms = Uniforms(a)});
    QueueOne(*plain.replay, {.importance_exponent = 0.5, .uniforms = Uniforms(b)});
    EXPECT_EQ(reserving.replay->AwaitReport()->loss, plain.replay->AwaitReport()->loss) << round;
    EXPECT_FALSE(reserving.replay->HasPendingUpdates());
  }
}

}  // namespace
}  // namespace uper::cuda
