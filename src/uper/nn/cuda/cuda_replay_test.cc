#include "uper/nn/cuda/cuda_replay.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>

#include "uper/base/random.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/cuda/test_support.h"
#include "uper/nn/initialization.h"
#include "uper/nn/test_data.h"
#include "uper/replay/replay_buffer.h"

namespace uper {
namespace {

using CudaReplayTest = GpuTest;

constexpr int kBatch = 8;

LearnerSpec SmallSpec(int stack) {
  NetworkSpec network{.input = {.height = 4, .width = 4, .channels = stack},
                      .dense = {8},
                      .hidden_units = 8,
                      .actions = 3,
                      .members = 2,
                      .outputs = 4};
  network.input.type = InputType::kUint8;
  network.input.layout = InputLayout::kPlanes;
  network.input.scale = 1.0F / 255;
  return {.network = network, .loss = {.head = HeadKind::kQuantile}, .batch = kBatch};
}

constexpr int kPixels = 16;

// Transitions and frames that a function of their ids makes, in rings as a run has them.
class Store {
 public:
  explicit Store(const GpuReplaySpec& spec) : spec_(spec) {}

  void Add(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      ++next_frame_;
      ++next_id_;
    }
    if (next_id_ - first_id_ > spec_.capacity) first_id_ = next_id_ - spec_.capacity;
  }
  void EvictBefore(std::uint64_t id) { first_id_ = std::max(first_id_, std::min(id, next_id_)); }

  GpuRecordTail Tail(std::uint64_t id) const {
    return {.a_tm1 = static_cast<std::int32_t>(id % 3),
            .r_t = static_cast<float>(id % 7) - 3,
            .discount_t = id % 5 == 0 ? 0.0F : 0.9F,
            .noisy = id % 4 == 0 ? 1U : 0U,
            .mask = id % 3 + 1};
  }
  static std::byte Pixel(std::uint64_t frame, int i) {
    return static_cast<std::byte>((frame * 31 + i * 7) % 251);
  }
  // Frame j of the stack of s_tm1 (first = id) or s_t (first = id + 1): the newest is last.
  std::uint32_t SlotAt(std::uint64_t first, int j) const {
    const std::uint64_t back = spec_.stack_depth - 1 - j;
    if (back > first) return kGpuZeroSlot;
    return static_cast<std::uint32_t>((first - back) % spec_.frame_capacity);
  }

  void ReadTransition(std::uint64_t id, std::byte* to) const {
    if (spec_.stack_depth > 0) {
      for (int which = 0; which < 2; ++which) {
        for (int j = 0; j < spec_.stack_depth; ++j) {
          const std::uint32_t slot = SlotAt(id + which, j);
          std::memcpy(to, &slot, sizeof(slot));
          to += sizeof(slot);
        }
      }
    } else {
      for (int which = 0; which < 2; ++which) {
        for (std::size_t i = 0; i < spec_.observation_bytes; ++i) {
          *to++ = Pixel(id + which, static_cast<int>(i));
        }
      }
    }
    const GpuRecordTail tail = Tail(id);
    std::memcpy(to, &tail, sizeof(tail));
  }

  GpuRecordSource Transitions() const {
    return {.first_id = first_id_,
            .next_id = next_id_,
            .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
              for (std::uint64_t id = begin; id < end; ++id) {
                ReadTransition(id, out.data() + (id - begin) * spec_.record_bytes);
              }
            }};
  }
  GpuRecordSource Frames() const {
    const std::uint64_t next = next_frame_ + 1;  // s_t of the newest
    return {.first_id = next - std::min<std::uint64_t>(next, spec_.frame_capacity),
            .next_id = next,
            .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
              for (std::uint64_t frame = begin; frame < end; ++frame) {
                for (std::size_t i = 0; i < spec_.frame_bytes; ++i) {
                  out[(frame - begin) * spec_.frame_bytes + i] = Pixel(frame, static_cast<int>(i));
                }
              }
            }};
  }

  std::uint64_t first_id() const { return first_id_; }
  std::uint64_t next_id() const { return next_id_; }

  // Everything of a batch that the host would have gathered.
  struct Batch {
    std::vector<std::byte> s_tm1, s_t;
    std::vector<std::int32_t> a_tm1;
    std::vector<float> r_t, discount_t;
    std::vector<std::uint64_t> masks;
  };
  Batch Gather(std::span<const std::uint64_t> ids) const {
    Batch batch;
    for (const std::uint64_t id : ids) {
      for (int which = 0; which < 2; ++which) {
        auto& to = which == 0 ? batch.s_tm1 : batch.s_t;
        const int frames = std::max(spec_.stack_depth, 1);
        for (int j = 0; j < frames; ++j) {
          const std::uint64_t newest = id + which;
          const std::uint64_t back = spec_.stack_depth > 0 ? spec_.stack_depth - 1 - j : 0;
          const std::size_t bytes =
              spec_.stack_depth > 0 ? spec_.frame_bytes : spec_.observation_bytes;
          for (std::size_t i = 0; i < bytes; ++i) {
            to.push_back(back > newest ? std::byte{0} : Pixel(newest - back, static_cast<int>(i)));
          }
        }
      }
      const GpuRecordTail tail = Tail(id);
      batch.a_tm1.push_back(tail.a_tm1);
      batch.r_t.push_back(tail.r_t);
      batch.discount_t.push_back(tail.discount_t);
      batch.masks.push_back(tail.mask);
    }
    return batch;
  }

 private:
  const GpuReplaySpec spec_;
  std::uint64_t first_id_ = 0, next_id_ = 0, next_frame_ = 0;
};

GpuReplaySpec SpecOf(std::size_t capacity, int stack_depth) {
  GpuReplaySpec spec{.capacity = capacity,
                     .stack_depth = stack_depth,
                     .priority_exponent = 1,
                     .uniform_mix = 0.01,
                     .rule = PriorityRule::kTd};
  if (stack_depth > 0) {
    spec.frame_bytes = kPixels;
    spec.frame_capacity = capacity + 20;
    spec.observation_bytes = stack_depth * kPixels;
    spec.record_bytes = 2 * stack_depth * sizeof(std::uint32_t) + sizeof(GpuRecordTail);
  } else {
    spec.observation_bytes = kPixels;
    spec.record_bytes = 2 * kPixels + sizeof(GpuRecordTail);
  }
  return spec;
}

void InitializeOnline(Learner& learner) {
  RandomStream stream(1, "parameters");
  InitializeUniform(learner.layout(), stream, learner.State().online);
  learner.SetUpdated(0);
  learner.CopyTarget();
}

std::vector<double> Uniforms(RandomStream& stream) {
  std::vector<double> uniforms(kBatch);
  for (double& u : uniforms) u = stream.Uniform();
  return uniforms;
}

// A learner on the GPU with its memory, beside a replay buffer of the host and a learner of the CPU
// that go the same way.
struct Pair {
  Pair(const GpuReplaySpec& spec, int stack)
      : store(spec),
        pool(1),
        cpu(SmallSpec(stack), pool),
        gpu(SmallSpec(stack)),
        memory(gpu.MakeReplay(spec)),
        buffer({.capacity = spec.capacity,
                .selection = {.priority_exponent = spec.priority_exponent,
                              .uniform_mix = spec.uniform_mix},
                .largest_priority_decay = spec.largest_priority_decay},
               RandomStream(3, "draws")) {
    InitializeOnline(cpu);
    InitializeOnline(gpu);
  }

  void Add(std::uint64_t count) {
    store.Add(count);
    for (std::uint64_t i = 0; i < count; ++i) buffer.Add();
  }
  void EvictBefore(std::uint64_t id) {
    store.EvictBefore(id);
    buffer.EvictBefore(id);
  }
  void Follow() { memory->Follow(store.Transitions(), store.Frames()); }

  // One update on the GPU with the random numbers of the host's stream.
  GpuUpdateReport Update(double beta) {
    std::vector<double> uniforms(kBatch);
    buffer.DrawUniforms(uniforms);
    memory->QueueUpdate({.importance_exponent = beta, .uniforms = uniforms});
    return *memory->NextReport(/*wait=*/true);
  }

  Store store;
  ThreadPool pool;
  CpuLearner cpu;
  CudaLearner gpu;
  std::unique_ptr<GpuReplay> memory;
  ReplayBuffer buffer;
};

// The draws, probabilities and weights of a buffer that draws with the same numbers.
struct HostDraws {
  std::vector<std::uint64_t> ids = std::vector<std::uint64_t>(kBatch);
  std::vector<double> probabilities = std::vector<double>(kBatch);
  std::vector<float> weights = std::vector<float>(kBatch);
};
HostDraws DrawOnHost(const ReplayBuffer& buffer, const ReplayBufferOptions& options,
                     const WeightOptions& weights) {
  ReplayBuffer copy(options, RandomStream(3, "draws"));
  copy.SetState(buffer.GetState());
  HostDraws draws;
  copy.Sample(weights,
              {.ids = draws.ids, .probabilities = draws.probabilities, .weights = draws.weights});
  return draws;
}

struct Shape {
  std::size_t capacity;
  int stack_depth;
};
void PrintTo(const Shape& shape, std::ostream* out) {
  *out << "capacity " << shape.capacity << ", stack " << shape.stack_depth;
}

class CudaReplayShapes : public CudaReplayTest, public testing::WithParamInterface<Shape> {};

// Exponents of 1 and 0 need no powers: every bit is the host's.
TEST_P(CudaReplayShapes, DrawsAreTheHostsBitForBit) {
  const auto [capacity, stack_depth] = GetParam();
  for (const auto normalization : {WeightNormalization::kBatchMax, WeightNormalization::kNone,
                                   WeightNormalization::kBufferMax}) {
    GpuReplaySpec spec = SpecOf(capacity, stack_depth);
    spec.normalization = normalization;
    spec.largest_priority_decay = 0.999;
    Pair pair(spec, std::max(stack_depth, 1));
    const ReplayBufferOptions options{
        .capacity = capacity,
        .selection = {.priority_exponent = spec.priority_exponent, .uniform_mix = spec.uniform_mix},
        .largest_priority_decay = spec.largest_priority_decay};
    RandomStream choices(5, "choices");
    for (int round = 0; round < 400; ++round) {
      pair.Add(1 + choices.UniformInt(std::min<std::size_t>(capacity, 9)));
      if (choices.Bernoulli(0.1)) {
        pair.EvictBefore(pair.store.first_id() + choices.UniformInt(pair.buffer.size()));
      }
      pair.Follow();
      const double beta = round % 2;
      const HostDraws expected = DrawOnHost(
          pair.buffer, options, {.importance_exponent = beta, .normalization = normalization});
      const GpuUpdateReport report = pair.Update(beta);
      ASSERT_TRUE(report.finite);
      ASSERT_TRUE(std::ranges::equal(report.ids, expected.ids)) << "round " << round;
      ASSERT_TRUE(std::ranges::equal(report.probabilities, expected.probabilities));
      ASSERT_TRUE(std::ranges::equal(report.weights, expected.weights));
      std::vector<double> values;
      for (std::size_t j = 0; j < kBatch; ++j) {
        ASSERT_EQ(report.noisy[j], report.ids[j] % 4 == 0 ? 1 : 0);
        const Priority priority =
            ComputePriority(spec.rule, {.td_error = report.td_error[j]}, spec.limits);
        ASSERT_EQ(report.priorities[j].value, priority.value);
        values.push_back(priority.value);
      }
      pair.buffer.SetPriorities(report.ids, values);
      if (round % 50 != 0) continue;
      std::vector<float> priorities(pair.buffer.size());
      double largest = 0;
      pair.memory->GetPriorities(priorities, largest);
      ASSERT_EQ(priorities, pair.buffer.GetState().selector.priorities);
      ASSERT_EQ(largest, pair.buffer.largest_priority());
      if (round % 100 == 0) pair.memory->SetPriorities(priorities, largest);  // rebuilds the tree
    }
  }
}

// With the parameters of the CPU before each update the update is the CPU's, so what was gathered
// is what the host has.
TEST_P(CudaReplayShapes, UpdatesAreThoseOfTheHostsBatches) {
  const auto [capacity, stack_depth] = GetParam();
  Pair pair(SpecOf(capacity, stack_depth), std::max(stack_depth, 1));
  for (int round = 0; round < 60; ++round) {
    pair.Add(3);
    pair.Follow();
    const GpuUpdateReport report = pair.Update(0.5);
    const Store::Batch batch = pair.store.Gather(report.ids);
    const LearnerOutput output = pair.cpu.Update({.s_tm1 = batch.s_tm1,
                                                  .s_t = batch.s_t,
                                                  .a_tm1 = batch.a_tm1,
                                                  .r_t = batch.r_t,
                                                  .discount_t = batch.discount_t,
                                                  .weights = report.weights,
                                                  .masks = batch.masks});
    ASSERT_NEAR(report.loss, output.loss, 1e-5 * std::abs(output.loss)) << "round " << round;
    ASSERT_NEAR(report.gradient_norm, output.gradient_norm, 1e-5 * output.gradient_norm);
    for (std::size_t j = 0; j < kBatch; ++j) {
      ASSERT_NEAR(report.td_error[j], output.td_error[j], 1e-5 * (1 + output.td_error[j]));
      ASSERT_NEAR(report.uncertainty[j].epistemic_delta, output.uncertainty[j].epistemic_delta,
                  1e-5 * (1 + output.uncertainty[j].epistemic_delta));
    }
    const LearnerState a = pair.cpu.State(), b = pair.gpu.State();
    for (std::size_t i = 0; i < a.online.size(); ++i) {
      ASSERT_NEAR(a.online[i], b.online[i], 1e-5) << "parameter " << i;
    }
    std::ranges::copy(a.online, b.online.begin());
    std::ranges::copy(a.target, b.target.begin());
    std::ranges::copy(a.first_moment, b.first_moment.begin());
    std::ranges::copy(a.second_moment, b.second_moment.begin());
    pair.gpu.SetUpdated(a.updates);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaReplayShapes,
                         testing::Values(Shape{1, 0}, Shape{9, 0}, Shape{64, 3}, Shape{65, 1},
                                         Shape{700, 4}, Shape{5000, 0}));

// Masses are powers that the GPU rounds in its own way, here to the last few bits.
TEST_F(CudaReplayTest, PowersAreThoseOfTheHostToTheLastBits) {
  GpuReplaySpec spec = SpecOf(500, 0);
  spec.priority_exponent = 0.6;
  Pair pair(spec, 1);
  pair.Add(500);
  pair.Follow();
  RandomStream stream(9, "priorities");
  std::vector<float> priorities(500);
  for (float& p : priorities) p = static_cast<float>(std::exp(20 * stream.Uniform() - 15));
  pair.memory->SetPriorities(priorities, 200);
  pair.buffer.SetRemotePriorities(priorities, 200);
  for (int round = 0; round < 20; ++round) {
    const GpuUpdateReport report = pair.Update(0.4);
    for (std::size_t j = 0; j < kBatch; ++j) {
      const double expected = pair.buffer.Probability(report.ids[j]);
      ASSERT_NEAR(report.probabilities[j] / expected, 1, 1e-14);
    }
    pair.memory->SetPriorities(priorities, 200);
  }
}

// Several updates in a row without a word from the host are the same updates.
TEST_F(CudaReplayTest, QueuedUpdatesAreThoseThatAreWaitedFor) {
  const GpuReplaySpec spec = SpecOf(300, 3);
  Pair waited(spec, 3), queued(spec, 3);
  for (Pair* pair : {&waited, &queued}) {
    pair->Add(200);
    pair->Follow();
  }
  RandomStream a(11, "uniforms"), b(11, "uniforms");
  std::vector<double> losses;
  for (int i = 0; i < 150; ++i) {
    if (i == 40) waited.gpu.CopyTarget();
    waited.memory->QueueUpdate({.importance_exponent = 0.5, .uniforms = Uniforms(a)});
    losses.push_back(waited.memory->NextReport(true)->loss);
  }
  std::size_t reported = 0;
  for (int i = 0; i < 150; ++i) {
    if (i == 40) queued.gpu.CopyTarget();
    if (i >= 64) {
      ASSERT_EQ(queued.memory->NextReport(true)->loss, losses[reported++]);
    }
    queued.memory->QueueUpdate({.importance_exponent = 0.5, .uniforms = Uniforms(b)});
  }
  while (const auto report = queued.memory->NextReport(true)) {
    ASSERT_EQ(report->loss, losses[reported++]);
  }
  EXPECT_EQ(reported, losses.size());
  EXPECT_TRUE(std::ranges::equal(waited.gpu.State().online, queued.gpu.State().online));
  EXPECT_EQ(queued.gpu.updates(), 150);
}

// Several updates in one graph are the same updates, though a batch is drawn before the update that
// precedes it has ended.
TEST_F(CudaReplayTest, UpdatesAtOnceAreThoseOneByOne) {
  const GpuReplaySpec spec = SpecOf(300, 3);
  Pair single(spec, 3), several(spec, 3);
  RandomStream a(12, "uniforms"), b(12, "uniforms");
  for (const int count : {1, 2, 3, GpuReplay::kMostUpdates, 4, 1, 5}) {
    for (Pair* pair : {&single, &several}) {
      pair->Add(40);  // later ones come over the seam
      pair->Follow();
    }
    std::vector<std::vector<double>> uniforms;
    std::vector<GpuUpdate> updates;
    for (int i = 0; i < count; ++i) uniforms.push_back(Uniforms(b));
    for (int i = 0; i < count; ++i) {
      updates.push_back({.importance_exponent = 0.1 * i, .uniforms = uniforms[i]});
    }
    several.memory->QueueUpdates(updates);
    for (int i = 0; i < count; ++i) {
      single.memory->QueueUpdate({.importance_exponent = 0.1 * i, .uniforms = Uniforms(a)});
      const GpuUpdateReport expected = *single.memory->NextReport(/*wait=*/true);
      const GpuUpdateReport report = *several.memory->NextReport(/*wait=*/true);
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
  several.memory->GetPriorities(priorities, largest);
  single.memory->GetPriorities(expected, expected_largest);
  EXPECT_EQ(priorities, expected);
  EXPECT_EQ(largest, expected_largest);
}

// Each update reports its own draw.
TEST_F(CudaReplayTest, OnlyDrawsWithoutMassAreReportedSo) {
  const GpuReplaySpec spec = SpecOf(1, 0);
  Pair pair(spec, 1);
  pair.Add(1);
  pair.Follow();
  pair.memory->SetPriorities(std::vector<float>(1, 0.0F), 1);
  const std::vector<double> uniforms(kBatch, 0.5);
  const std::vector<GpuUpdate> updates(2, {.importance_exponent = 1, .uniforms = uniforms});
  pair.memory->QueueUpdates(updates);
  EXPECT_TRUE(pair.memory->NextReport(/*wait=*/true)->massless);
  EXPECT_FALSE(pair.memory->NextReport(/*wait=*/true)->massless);
}

TEST_F(CudaReplayTest, ActsOnStoredFrames) {
  const GpuReplaySpec spec = SpecOf(50, 4);
  Pair pair(spec, 4);
  pair.Add(70);  // beyond the seam
  pair.Follow();
  const std::vector<std::uint64_t> ids = {69, 30, 60};
  std::vector<std::uint32_t> slots;
  for (const std::uint64_t id : ids) {
    for (int j = 0; j < 4; ++j) slots.push_back(pair.store.SlotAt(id, j));
  }
  slots[0] = kGpuZeroSlot;
  Store::Batch batch = pair.store.Gather(ids);
  std::fill_n(batch.s_tm1.begin(), kPixels, std::byte{0});
  std::vector<float> q(9), expected(9);
  pair.gpu.ActionValues(batch.s_tm1, 3, expected);
  pair.memory->BeginActing(slots, 3);
  pair.memory->QueueUpdate({.uniforms = std::vector<double>(kBatch, 0.5)});  // too late to matter
  pair.memory->FinishActing(3, q);
  EXPECT_EQ(q, expected);
}

// What is stored and drawn beside many decisions is what would be without them.
TEST_F(CudaReplayTest, ManyDecisionsDoNotMatter) {
  const GpuReplaySpec spec = SpecOf(60, 4);
  Pair acting(spec, 4), quiet(spec, 4);
  RandomStream a(13, "uniforms"), b(13, "uniforms");
  constexpr int kDecisions = 6;
  std::vector<float> q(3 * kDecisions), expected(q.size());
  for (int round = 0; round < 30; ++round) {
    for (Pair* pair : {&acting, &quiet}) {
      pair->Add(7);
      pair->Follow();
    }
    std::vector<std::uint64_t> ids;
    std::vector<std::uint32_t> slots;
    for (int i = 0; i < kDecisions; ++i) {
      ids.push_back(acting.buffer.next_id() - 1 - i);  // some of them new
      for (int j = 0; j < 4; ++j) slots.push_back(acting.store.SlotAt(ids.back(), j));
    }
    quiet.gpu.ActionValues(acting.store.Gather(ids).s_tm1, kDecisions, expected);
    acting.memory->BeginActing(slots, kDecisions);
    for (const bool acts : {true, false}) {
      const std::vector<double> first = Uniforms(acts ? a : b), second = Uniforms(acts ? a : b);
      const GpuUpdate updates[] = {{.importance_exponent = 0.5, .uniforms = first},
                                   {.importance_exponent = 0.7, .uniforms = second}};
      (acts ? acting : quiet).memory->QueueUpdates(updates);
    }
    acting.memory->FinishActing(kDecisions, q);
    EXPECT_EQ(q, expected);
    for (int i = 0; i < 2; ++i) {
      const GpuUpdateReport report = *acting.memory->NextReport(/*wait=*/true);
      const GpuUpdateReport same = *quiet.memory->NextReport(/*wait=*/true);
      ASSERT_EQ(report.loss, same.loss) << round;
      ASSERT_TRUE(std::ranges::equal(report.ids, same.ids));
    }
  }
  EXPECT_TRUE(std::ranges::equal(acting.gpu.State().online, quiet.gpu.State().online));
}

TEST_F(CudaReplayTest, TakesGivenDraws) {
  GpuReplaySpec spec = SpecOf(40, 0);
  spec.draws = false;
  spec.rule = PriorityRule::kUniform;
  Pair pair(spec, 1);
  pair.Add(60);
  pair.Follow();
  const std::vector<std::uint64_t> ids = {59, 20, 21, 40, 41, 40, 33, 58};
  const std::vector<float> weights(kBatch, 0.5F);
  pair.memory->QueueUpdate({.ids = ids, .weights = weights});
  const GpuUpdateReport report = *pair.memory->NextReport(true);
  EXPECT_TRUE(std::ranges::equal(report.ids, ids));
  EXPECT_TRUE(std::ranges::equal(report.weights, weights));
  const Store::Batch batch = pair.store.Gather(ids);
  const LearnerOutput output = pair.cpu.Update({.s_tm1 = batch.s_tm1,
                                                .s_t = batch.s_t,
                                                .a_tm1 = batch.a_tm1,
                                                .r_t = batch.r_t,
                                                .discount_t = batch.discount_t,
                                                .weights = weights,
                                                .masks = batch.masks});
  EXPECT_NEAR(report.loss, output.loss, 1e-5 * std::abs(output.loss));
}

TEST_F(CudaReplayTest, ReportsAnUpdateThatIsNotFinite) {
  Pair pair(SpecOf(40, 0), 1);
  pair.Add(30);
  pair.Follow();
  const LearnerState state = pair.gpu.State();
  std::ranges::fill(state.online, std::numeric_limits<float>::infinity());
  pair.gpu.SetUpdated(0);
  std::vector<float> before(30), after(30);
  double largest = 0;
  pair.memory->GetPriorities(before, largest);
  const GpuUpdateReport report = pair.Update(0.5);
  EXPECT_FALSE(report.finite);
  pair.memory->GetPriorities(after, largest);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace uper
