#include "uper/nn/cuda/head/head_kernels.h"

#include <algorithm>
#include <array>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

// A head with random data, and its formulas in plain loops.
struct Fixture {
  Fixture(HeadShape head, int samples, std::uint64_t learners = 0x9d3f5a6e71c2b84fULL)
      : shape(head), batch(samples) {
    const int blocks = shape.actions * shape.members;
    w = RandomFloats(std::size_t{1} * blocks * shape.hidden * shape.outputs, "w");
    bias = RandomFloats(shape.shared_bias ? 1 : blocks * shape.outputs, "bias");
    hidden = RandomFloats(std::size_t{1} * batch * shape.hidden_total(), "hidden");
    d_out = RandomFloats(std::size_t{1} * batch * shape.members * shape.outputs, "d_out");
    actions = RandomInts(batch, shape.actions, "actions");
    member_actions = RandomInts(std::size_t{1} * batch * shape.members, shape.actions, "members");
    for (int b = 0; b < batch; ++b) masks.push_back(learners >> b % 7);
    for (int b = 0; b < batch; ++b) {
      for (int k = 0; k < shape.members; ++k) {
        if (Learns(b, k)) continue;
        std::fill_n(&d_out[(b * shape.members + k) * shape.outputs], shape.outputs, 0.0F);
      }
    }
  }

  bool Learns(int b, int k) const { return (masks[b] >> k & 1) != 0; }
  double W(int a, int k, int h, int m) const {
    return w[((a * shape.members + k) * shape.hidden + h) * shape.outputs + m];
  }
  double Hidden(int b, int k, int h) const {
    return hidden[b * shape.hidden_total() + (shape.separate_hidden ? k * shape.hidden : 0) + h];
  }
  double D(int b, int k, int m) const { return d_out[(b * shape.members + k) * shape.outputs + m]; }
  double Bias(int a, int k, int m) const {
    return bias[shape.shared_bias ? 0 : (a * shape.members + k) * shape.outputs + m];
  }
  double Output(int b, int a, int k, int m) const {  // without the bias
    double sum = 0;
    for (int h = 0; h < shape.hidden; ++h) sum += Hidden(b, k, h) * W(a, k, h, m);
    return sum;
  }
  double Gradient(int a, int k, int h, int m) const {
    double sum = 0;
    for (int b = 0; b < batch; ++b) {
      if (actions[b] == a) sum += Hidden(b, k, h) * D(b, k, m);
    }
    return sum;
  }

  HeadShape shape;
  int batch;
  std::vector<float> w, bias, hidden, d_out;
  std::vector<int> actions, member_actions;
  std::vector<std::uint64_t> masks;
};

// The same on the GPU.
struct GpuFixture {
  explicit GpuFixture(const Fixture& f)
      : w(OnGpu(f.w)),
        bias(OnGpu(f.bias)),
        hidden(OnGpu(f.hidden)),
        d_out(OnGpu(f.d_out)),
        actions(OnGpu(f.actions)),
        member_actions(OnGpu(f.member_actions)),
        masks(OnGpu(f.masks)),
        gradient{.batch = f.batch,
                 .actions = actions.data(),
                 .masks = masks.data(),
                 .hidden = hidden.data(),
                 .d_out = d_out.data()} {}

  DeviceBuffer<float> w, bias, hidden, d_out;
  DeviceBuffer<int> actions, member_actions;
  DeviceBuffer<std::uint64_t> masks;
  HeadGradient gradient;
};

const Fixture& At(const std::vector<Fixture>& all, std::size_t i) { return all[i]; }

std::vector<Fixture> Fixtures() {
  std::vector<Fixture> all;
  all.emplace_back(HeadShape{.actions = 1, .members = 1, .hidden = 3, .outputs = 1}, 1);
  all.emplace_back(HeadShape{.actions = 18, .members = 10, .hidden = 37, .outputs = 201}, 31);
  all.emplace_back(HeadShape{.actions = 2, .members = 3, .hidden = 64, .outputs = 51}, 64);
  all.emplace_back(HeadShape{.actions = 6, .members = 1, .hidden = 512, .outputs = 1}, 32);
  all.emplace_back(HeadShape{.actions = 3, .members = 2, .hidden = 33, .outputs = 300}, 17);
  all.emplace_back(HeadShape{.actions = 2, .members = 1, .hidden = 600, .outputs = 9}, 40);
  all.emplace_back(HeadShape{.actions = 40,
                             .members = 4,
                             .hidden = 20,
                             .outputs = 7,
                             .separate_hidden = true,
                             .shared_bias = true},
                   9);
  all.emplace_back(HeadShape{.actions = 3, .members = 1, .hidden = 512, .outputs = 201}, 33);
  all.emplace_back(HeadShape{.actions = 5, .members = 2, .hidden = 40, .outputs = 50}, 33);
  all.emplace_back(HeadShape{.actions = 4, .members = 3, .hidden = 130, .outputs = 3}, 100);
  // All samples take the same action.
  all.emplace_back(HeadShape{.actions = 4, .members = 2, .hidden = 68, .outputs = 51}, 70);
  std::fill(all.back().actions.begin(), all.back().actions.end(), 2);
  std::fill(all.back().member_actions.begin(), all.back().member_actions.end(), 3);
  return all;
}

class HeadKernelsTest : public GpuTest {};

std::vector<float> AddParts(const std::vector<float>& parts) {
  const std::size_t size = parts.size() / kHeadParts;
  std::vector<float> sums(size, 0.0F);
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i % size] += parts[i];
  return sums;
}

TEST_F(HeadKernelsTest, SelectionsOfOneActionAndOfAll) {
  for (const Fixture& f : Fixtures()) {
    const HeadShape& s = f.shape;
    const GpuFixture gpu(f);
    const std::size_t size = std::size_t{1} * f.batch * s.members * s.outputs;
    DeviceBuffer<float> taken = Poisoned(kHeadParts * size), own = Poisoned(kHeadParts * size);
    DeviceBuffer<float> all = Poisoned(kHeadParts * size * s.actions);
    const std::array selections{HeadForwardChosen{.w = gpu.w.data(),
                                                  .hidden = gpu.hidden.data(),
                                                  .actions = gpu.actions.data(),
                                                  .sample_stride = 1,
                                                  .actions_ready = true,
                                                  .parts = taken.data()},
                                HeadForwardChosen{.w = gpu.w.data(),
                                                  .hidden = gpu.hidden.data(),
                                                  .actions = gpu.member_actions.data(),
                                                  .sample_stride = s.members,
                                                  .member_stride = 1,
                                                  .parts = own.data()}};
    LaunchForwardChosen(s, f.batch, selections, nullptr);
    const HeadForwardChosen every{
        .w = gpu.w.data(), .hidden = gpu.hidden.data(), .parts = all.data()};
    LaunchForwardChosen(s, f.batch, {&every, 1}, nullptr);
    std::vector<double> expected_taken, expected_own, expected_all;
    for (int b = 0; b < f.batch; ++b) {
      for (int k = 0; k < s.members; ++k) {
        for (int m = 0; m < s.outputs; ++m) {
          expected_taken.push_back(f.Output(b, f.actions[b], k, m));
          expected_own.push_back(f.Output(b, f.member_actions[b * s.members + k], k, m));
        }
      }
      for (int block = 0; block < s.actions * s.members; ++block) {
        for (int m = 0; m < s.outputs; ++m) {
          expected_all.push_back(f.Output(b, block / s.members, block % s.members, m));
        }
      }
    }
    EXPECT_LT(RelativeError(AddParts(FromGpu(taken)), expected_taken), 2e-6);
    EXPECT_LT(RelativeError(AddParts(FromGpu(own)), expected_own), 2e-6);
    EXPECT_LT(RelativeError(AddParts(FromGpu(all)), expected_all), 2e-6);
  }
}

// Published values equal stored values, and their sequence numbers are right.
void ExpectPublished(HeadForwardMean means, const std::vector<float>& expected) {
  std::vector<int> computed(means.batch);
  for (int b = 0; b < means.batch; ++b) computed[b] = 3 * b;
  DeviceBuffer<int> sequences = OnGpu(computed);
  PinnedBuffer<std::uint64_t> mailbox(expected.size());
  means.values = nullptr;
  means.sequences = sequences.data();
  means.mailbox = mailbox.data();
  LaunchForwardMean(means, nullptr);
  const std::vector<int> after = FromGpu(sequences);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t b = i / means.actions;
    EXPECT_EQ(MailboxValue(mailbox[i]), expected[i]) << i;
    EXPECT_EQ(MailboxSequence(mailbox[i]), computed[b] + 1) << i;
    EXPECT_EQ(after[b], computed[b] + 1);
  }
}

TEST_F(HeadKernelsTest, MeanWeightsAndTheMeansTheyGive) {
  for (const Fixture& f : Fixtures()) {
    const HeadShape& s = f.shape;
    const GpuFixture gpu(f);
    const std::size_t rows = std::size_t{1} * s.members * s.actions;
    DeviceBuffer<float> member_weights = Poisoned(rows * s.hidden), member_bias = Poisoned(rows);
    DeviceBuffer<float> ensemble_weights = Poisoned(std::size_t{1} * s.hidden_total() * s.actions);
    LaunchHeadMeanWeights(s, gpu.w.data(), gpu.bias.data(),
                          {member_weights.data(), member_bias.data(), ensemble_weights.data()},
                          nullptr);
    DeviceBuffer<float> values = Poisoned(f.batch * rows), q = Poisoned(f.batch * s.actions);
    DeviceBuffer<float> mean_q = Poisoned(f.batch * s.actions);
    DeviceBuffer<int> chosen(f.batch * s.members), own(chosen.size()), together(chosen.size());
    LaunchForwardMean({.batch = f.batch,
                       .members = s.members,
                       .hidden = s.hidden,
                       .actions = s.actions,
                       .units = gpu.hidden.data(),
                       .unit_stride = s.hidden_total(),
                       .member_step = s.separate_hidden ? s.hidden : 0,
                       .weights = member_weights.data(),
                       .bias = member_bias.data(),
                       .values = values.data(),
                       .chosen = chosen.data()},
                      nullptr);
    const HeadForwardMean of_ensemble{.batch = f.batch,
                                      .members = 1,
                                      .hidden = s.hidden_total(),
                                      .actions = s.actions,
                                      .units = gpu.hidden.data(),
                                      .unit_stride = s.hidden_total(),
                                      .weights = ensemble_weights.data(),
                                      .bias = member_bias.data(),
                                      .bias_members = s.members,
                                      .values = q.data()};
    LaunchForwardMean(of_ensemble, nullptr);
    ExpectPublished(of_ensemble, FromGpu(q));
    LaunchMemberMean(s, f.batch, values.data(), mean_q.data(), nullptr);
    LaunchChoose(s, f.batch, false, values.data(), own.data(), nullptr);
    LaunchChoose(s, f.batch, true, values.data(), together.data(), nullptr);
    std::vector<double> expected, expected_q;
    for (int b = 0; b < f.batch; ++b) {
      std::vector<double> sums(s.actions);
      for (int k = 0; k < s.members; ++k) {
        for (int a = 0; a < s.actions; ++a) {
          double mean = 0;
          for (int m = 0; m < s.outputs; ++m) {
            mean += (f.Output(b, a, k, m) + f.Bias(a, k, m)) / s.outputs;
          }
          expected.push_back(mean);
          sums[a] += mean / s.members;
        }
      }
      expected_q.insert(expected_q.end(), sums.begin(), sums.end());
    }
    const std::vector<float> found = FromGpu(values);
    EXPECT_LT(RelativeError(found, expected), 3e-6);
    EXPECT_LT(RelativeError(FromGpu(q), expected_q), 3e-6);
    EXPECT_LT(RelativeError(FromGpu(mean_q), expected_q), 3e-6);
    EXPECT_EQ(FromGpu(chosen), FromGpu(own));
    const std::vector<int> greedy = FromGpu(own), common = FromGpu(together);
    for (int row = 0; row < f.batch * s.members; ++row) {
      const float* values_of_row = &found[row * s.actions];
      EXPECT_EQ(greedy[row],
                std::max_element(values_of_row, values_of_row + s.actions) - values_of_row);
      const double* sums = &expected_q[row / s.members * s.actions];
      EXPECT_GE(sums[common[row]], *std::max_element(sums, sums + s.actions) - 1e-4);
    }
  }
}

TEST_F(HeadKernelsTest, GradientsAndTheirNorm) {
  for (const Fixture& f : Fixtures()) {
    const HeadShape& s = f.shape;
    const GpuFixture gpu(f);
    DeviceBuffer<float> dw = Poisoned(f.w.size()), db = Poisoned(f.bias.size());
    DeviceBuffer<float> parts = Poisoned(std::size_t{1} * s.members * f.batch * s.hidden);
    DeviceBuffer<float> d_hidden = Poisoned(f.hidden.size());
    DeviceBuffer<double> squares(HeadSquareCount(s)), bias_squares(BiasBlocks(s));
    LaunchHeadWeights(s, gpu.gradient, dw.data(), nullptr);
    LaunchBackwardBias(s, gpu.gradient, db.data(), bias_squares.data(), nullptr);
    LaunchBackwardHidden(s, gpu.gradient, gpu.w.data(), parts.data(), nullptr);
    LaunchSumHidden(s, gpu.gradient, parts.data(), d_hidden.data(), nullptr);
    LaunchHeadSquares(s, gpu.gradient, squares.data(), nullptr);
    std::vector<double> expected_w, expected_hidden(f.hidden.size());
    std::vector<double> expected_b(f.bias.size()), expected_squares(s.members);
    for (int a = 0; a < s.actions; ++a) {
      for (int k = 0; k < s.members; ++k) {
        for (int h = 0; h < s.hidden; ++h) {
          for (int m = 0; m < s.outputs; ++m) {
            const double g = f.Gradient(a, k, h, m);
            expected_w.push_back(g);
            expected_squares[k] += g * g;
          }
        }
      }
    }
    for (int b = 0; b < f.batch; ++b) {
      for (int k = 0; k < s.members; ++k) {
        for (int m = 0; m < s.outputs; ++m) {
          const int at = (f.actions[b] * s.members + k) * s.outputs + m;
          expected_b[s.shared_bias ? 0 : at] += f.D(b, k, m);
          for (int h = 0; h < s.hidden; ++h) {
            if (!(f.Hidden(b, k, h) > 0)) continue;
            expected_hidden[b * s.hidden_total() + (s.separate_hidden ? k * s.hidden : 0) + h] +=
                f.D(b, k, m) * f.W(f.actions[b], k, h, m);
          }
        }
      }
    }
    EXPECT_LT(RelativeError(FromGpu(dw), expected_w), 2e-6);
    EXPECT_LT(RelativeError(FromGpu(db), expected_b), 2e-6);
    double expected_bias_squares = 0;
    for (const double g : expected_b) expected_bias_squares += g * g;
    double found_bias_squares = 0;
    for (const double part : FromGpu(bias_squares)) found_bias_squares += part;
    EXPECT_NEAR(found_bias_squares, expected_bias_squares, 1e-5 * expected_bias_squares);
    EXPECT_LT(RelativeError(FromGpu(d_hidden), expected_hidden), 2e-6);
    std::vector<double> found_squares(s.members);
    const std::vector<double> square_parts = FromGpu(squares);
    for (std::size_t i = 0; i < square_parts.size(); ++i) {
      found_squares[i / kSquareParts] += square_parts[i];
    }
    EXPECT_LT(RelativeError(found_squares, expected_squares), 1e-6);
  }
}

TEST_F(HeadKernelsTest, AtomValuesAreExpectations) {
  const std::vector<Fixture> fixtures = Fixtures();
  for (const std::size_t which : {std::size_t{2}, std::size_t{6}}) {
    const Fixture& f = At(fixtures, which);
    const HeadShape& s = f.shape;
    const GpuFixture gpu(f);
    const std::size_t rows = std::size_t{1} * f.batch * s.actions * s.members;
    DeviceBuffer<float> parts = Poisoned(kHeadParts * rows * s.outputs), values = Poisoned(rows);
    const HeadForwardChosen every{
        .w = gpu.w.data(), .hidden = gpu.hidden.data(), .parts = parts.data()};
    LaunchForwardChosen(s, f.batch, {&every, 1}, nullptr);
    LaunchAtomValues(s,
                     {.batch = f.batch,
                      .parts = parts.data(),
                      .bias = gpu.bias.data(),
                      .low = -3,
                      .spacing = 0.25,
                      .values = values.data()},
                     nullptr);
    std::vector<double> expected;
    for (int b = 0; b < f.batch; ++b) {
      for (int k = 0; k < s.members; ++k) {
        for (int a = 0; a < s.actions; ++a) {
          double mass = 0, sum = 0;
          for (int m = 0; m < s.outputs; ++m) {
            const double p = std::exp(f.Output(b, a, k, m) + f.Bias(a, k, m));
            mass += p;
            sum += p * (-3 + 0.25 * m);
          }
          expected.push_back(sum / mass);
        }
      }
    }
    EXPECT_LT(RelativeError(FromGpu(values), expected), 1e-5);
  }
}

}  // namespace
}  // namespace uper::cuda
