#include "uper/nn/cuda/cuda_learner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "uper/base/error.h"
#include "uper/base/thread_pool.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/cuda/jumps.h"
#include "uper/nn/cuda/test_support.h"
#include "uper/nn/initialization.h"
#include "uper/nn/test_data.h"

namespace uper {
namespace {

using Data = LearnerTestData;

void CopyState(Learner& from, Learner& to) {
  const LearnerState a = from.State(), b = to.State();
  std::copy(a.online.begin(), a.online.end(), b.online.begin());
  std::copy(a.target.begin(), a.target.end(), b.target.begin());
  std::copy(a.first_moment.begin(), a.first_moment.end(), b.first_moment.begin());
  std::copy(a.second_moment.begin(), a.second_moment.end(), b.second_moment.begin());
  to.SetUpdated(a.updates);
}

std::vector<double> Statistics(const LearnerOutput& output) {
  std::vector<double> all = {output.loss, output.gradient_norm};
  all.insert(all.end(), output.td_error.begin(), output.td_error.end());
  for (const Uncertainty& u : output.uncertainty) {
    all.insert(all.end(), {u.mean, u.epistemic, u.aleatoric, u.target_distance_sq,
                           u.epistemic_delta, u.total, u.total_delta});
  }
  return all;
}

// Everything a learner carries on.
std::vector<float> Numbers(Learner& learner) {
  const LearnerState state = learner.State();
  std::vector<float> numbers;
  for (const auto part : {state.online, state.target, state.first_moment, state.second_moment}) {
    numbers.insert(numbers.end(), part.begin(), part.end());
  }
  return numbers;
}

struct Agent {
  std::string name;
  LearnerSpec spec;
};

LearnerSpec SpecOf(const NetworkSpec& network, HeadKind head, int batch) {
  LearnerSpec spec{
      .network = network, .loss = {.head = head}, .max_global_norm = 10, .batch = batch};
  spec.loss.support = {.low = -2, .high = 3, .atoms = static_cast<std::size_t>(network.outputs)};
  if (head == HeadKind::kScalar) spec.optimizer = RmsPropOptions{};
  return spec;
}

// Pictures whose sizes fit nothing: borders of all kinds in the backward pass, three layers.
NetworkSpec OddNetwork(const HeadSize& head) {
  return {.input = {.height = 21,
                    .width = 17,
                    .channels = 3,
                    .type = InputType::kUint8,
                    .layout = InputLayout::kPlanes,
                    .scale = 1.0F / 255},
          .convolutions = {{5, 3, 1}, {12, 4, 2}, {7, 3, 3}},
          .dense = {19},
          .hidden_units = 21,
          .actions = head.actions,
          .members = head.members,
          .outputs = head.outputs};
}

std::vector<Agent> Agents() {
  std::vector<Agent> agents;
  const auto add = [&](const std::string& name, LearnerSpec spec) -> LearnerSpec& {
    agents.push_back({name, std::move(spec)});
    return agents.back().spec;
  };
  const HeadSize scalar{.actions = 6, .members = 1, .outputs = 1};
  const HeadSize quantile{.actions = 6, .members = 10, .outputs = 51};
  const HeadSize atoms{.actions = 4, .members = 3, .outputs = 51};
  add("dqn", SpecOf(MinatarNetwork(4, scalar), HeadKind::kScalar, 32));
  LearnerSpec& double_dqn =
      add("double-dqn", SpecOf(MinatarNetwork(7, scalar), HeadKind::kScalar, 31));
  double_dqn.loss.double_q = true;
  double_dqn.network.shared_output_bias = true;
  add("qr-dqn", SpecOf(MinatarNetwork(6, {.actions = 3, .members = 1, .outputs = 200}),
                       HeadKind::kQuantile, 32));
  add("qr-ens-uper", SpecOf(MinatarNetwork(4, quantile), HeadKind::kQuantile, 32));
  LearnerSpec& clipped =
      add("always clipped", SpecOf(MinatarNetwork(4, quantile), HeadKind::kQuantile, 32));
  clipped.max_global_norm = 1e-3;
  LearnerSpec& separate =
      add("separate hidden layers", SpecOf(MinatarNetwork(10, quantile), HeadKind::kQuantile, 9));
  separate.network.separate_hidden = true;
  separate.loss.double_q = true;
  separate.loss.target_action = TargetAction::kEnsemble;
  separate.loss.target_form = TargetForm::kScalar;
  separate.loss.sum_members = true;
  separate.optimizer = RmsPropOptions{.epsilon_place = EpsilonPlace::kOutsideRoot};
  LearnerSpec& plain = add("plain quantile loss, one sample",
                           SpecOf(MinatarNetwork(4, quantile), HeadKind::kQuantile, 1));
  plain.loss.huber_kappa = 0;
  plain.loss.td_priority = TdPriority::kLoss;
  for (const CategoricalUncertainty form :
       {CategoricalUncertainty::kQuantiles, CategoricalUncertainty::kTotalVariance,
        CategoricalUncertainty::kProducts}) {
    LearnerSpec& c51 = add("c51 " + std::to_string(int(form)),
                           SpecOf(MinatarNetwork(4, atoms), HeadKind::kCategorical, 33));
    c51.loss.categorical_uncertainty = form;
    c51.loss.td_priority = TdPriority::kLoss;
    if (form == CategoricalUncertainty::kProducts) {
      c51.loss.target_action = TargetAction::kEnsemble;
      c51.loss.double_q = true;
    }
  }
  add("odd pictures",
      SpecOf(OddNetwork({.actions = 18, .members = 2, .outputs = 5}), HeadKind::kQuantile, 11));
  NetworkSpec pixels = OddNetwork({.actions = 3, .members = 2, .outputs = 5});
  pixels.input.height = 29;
  pixels.input.width = 36;
  pixels.convolutions = {{8, 8, 4}, {12, 3, 2}};
  add("pixels four at a time", SpecOf(pixels, HeadKind::kQuantile, 5));
  pixels.input.width = 44;
  pixels.input.channels = 4;
  pixels.convolutions = {{32, 8, 4}, {12, 3, 2}};
  add("first convolution of its own", SpecOf(pixels, HeadKind::kQuantile, 5));
  add("mlp", SpecOf(MlpNetwork(13, {31, 17, 10}, {.actions = 2, .members = 3, .outputs = 7}),
                    HeadKind::kQuantile, 64));
  return agents;
}

class CudaLearnerTest : public GpuTest {};

// A number that came out differently.
struct Difference {
  std::string what;
  double error, tolerance;
  bool beyond_relu = false;   // it depends on the derivatives of the torso's ReLUs
  bool beyond_greedy = true;  // it depends on the target's actions
};

double Largest(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

double Norm(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += double{value} * double{value};
  return std::sqrt(sum);
}

double Distance(std::span<const float> x, std::span<const float> y) {
  std::vector<float> difference(x.begin(), x.end());
  for (std::size_t i = 0; i < y.size(); ++i) difference[i] -= y[i];
  return Norm(difference);
}

// How far the gradients of a layer's weights or bias are from each other. That of a bias is a sum
// that may cancel, so both are measured by the gradient of the whole layer.
double GradientError(const ParameterLayout& layout, const ParameterView& view,
                     std::span<const float> gradient, std::span<const float> expected) {
  const std::string layer = view.name.substr(0, view.name.rfind('/'));
  const ParameterView& w = layout.Find(layer + "/w");
  const std::size_t layer_size = w.size() + layout.Find(layer + "/b").size();
  const double distance = Distance(gradient.subspan(view.offset, view.size()),
                                   expected.subspan(view.offset, view.size()));
  return distance == 0 ? 0 : distance / Norm(expected.subspan(w.offset, layer_size));
}

// One update from the same state on both. Parameters are compared by how far they moved.
std::vector<Difference> CompareUpdate(CpuLearner& cpu, CudaLearner& gpu, const Data& data,
                                      double tolerance) {
  std::vector<Difference> differences;
  const auto check = [&](Difference d) {
    if (!(d.error < d.tolerance)) differences.push_back(std::move(d));
  };
  const std::vector<float> before(cpu.State().online.begin(), cpu.State().online.end());
  const LearnerOutput expected = cpu.Update(data.View());
  const LearnerOutput found = gpu.Update(data.View());
  const auto relative = [](double x, double y) {
    return x == y ? 0 : std::abs(x - y) / std::abs(y);
  };
  check({"loss", relative(found.loss, expected.loss), tolerance});
  check({"gradient norm", relative(found.gradient_norm, expected.gradient_norm), tolerance, true});
  check({"td error", RelativeError(found.td_error, expected.td_error), tolerance});
  const std::vector<double> statistics = Statistics(found), expected_ones = Statistics(expected);
  for (int field = 0; field < 7; ++field) {
    std::vector<double> one, expected_one;
    for (std::size_t i = 2 + found.td_error.size() + field; i < statistics.size(); i += 7) {
      one.push_back(statistics[i]);
      expected_one.push_back(expected_ones[i]);
    }
    const bool of_target = field == 3 || field == 4 || field == 6;
    double error = RelativeError(one, expected_one);
    if (field == 0) {  // a mean may cancel: relative to its terms, or to the largest of the batch
      const double largest = Largest(expected_one);
      error = 0;
      for (std::size_t i = 0; i < one.size(); ++i) {
        const double terms = std::abs(expected_one[i]) + std::sqrt(expected.uncertainty[i].total);
        if (one[i] != expected_one[i]) {
          error = std::max(error, std::abs(one[i] - expected_one[i]) / std::max(largest, terms));
        }
      }
    }
    check({"statistic " + std::to_string(field), error, tolerance, false, of_target});
  }
  const std::span<const float> gradient = gpu.gradient(), expected_gradient = cpu.gradient();
  const LearnerState state = gpu.State(), expected_state = cpu.State();
  for (const ParameterView& view : cpu.layout().views()) {
    const bool torso = !view.name.starts_with("head");
    check({"gradient of " + view.name,
           GradientError(cpu.layout(), view, gradient, expected_gradient), tolerance, torso});
    const auto compare = [&](const std::string& what, std::span<const float> x,
                             std::span<const float> y, double allowed) {
      check(
          {what + " of " + view.name,
           RelativeError(x.subspan(view.offset, view.size()), y.subspan(view.offset, view.size())),
           allowed, torso});
    };
    compare("parameters", state.online, expected_state.online, tolerance);
    compare("first moment", state.first_moment, expected_state.first_moment, tolerance);
    compare("second moment", state.second_moment, expected_state.second_moment, 2 * tolerance);
  }
  EXPECT_FALSE(SameBits(state.online, before));
  EXPECT_EQ(gpu.updates(), cpu.updates());
  return differences;
}

// `updates` updates, each from the CPU's state. An update that differs must come so close to a jump
// of the gradient that rounding decides the side; then only what the jump touches may differ.
void ExpectSameUpdates(const Agent& agent, int updates) {
  SCOPED_TRACE(agent.name);
  ThreadPool pool(2);
  CpuLearner cpu(agent.spec, pool);
  CudaLearner gpu(agent.spec);
  JumpFinder finder(cpu.spec(), cpu.layout());
  Initialize(cpu);
  int at_jumps = 0;
  for (int i = 0; i < updates && !testing::Test::HasFailure(); ++i) {
    CopyState(cpu, gpu);
    std::vector<float> before(cpu.State().online.begin(), cpu.State().online.end());
    const Data data(agent.spec, "batch " + std::to_string(i % 50));
    const std::vector<Difference> differences = CompareUpdate(cpu, gpu, data, 1e-5);
    if (!differences.empty()) {
      ++at_jumps;
      LearnerState state = cpu.State();
      state.online = before;  // the target is still that of the update
      const Jumps jumps = finder.Find(state, data.View());
      const bool relu = jumps.relu < std::ldexp(1.0, -24);
      const bool greedy = jumps.greedy < std::ldexp(1.0, -22);
      std::printf("%s, update %d: %zu differences, the first: %s by %.3g; ReLU %.3g, greedy %.3g\n",
                  agent.name.c_str(), i + 1, differences.size(), differences[0].what.c_str(),
                  differences[0].error, jumps.relu, jumps.greedy);
      for (const Difference& d : differences) {
        EXPECT_TRUE((relu && d.beyond_relu) || (greedy && d.beyond_greedy))
            << "update " << i + 1 << ": " << d.what << " differs by " << d.error;
      }
    }
    if (i % 100 == 99) cpu.CopyTarget();
  }
  EXPECT_LE(at_jumps, std::max(1, updates / 100));
}

TEST_F(CudaLearnerTest, EveryAgentUpdatesAsOnTheCpu) {
  for (const Agent& agent : Agents()) ExpectSameUpdates(agent, 30);
}

TEST_F(CudaLearnerTest, AThousandUpdatesAsOnTheCpu) {
  for (const Agent& agent : Agents()) {
    if (agent.name == "qr-ens-uper" || agent.name == "dqn") ExpectSameUpdates(agent, 1000);
  }
}

TEST_F(CudaLearnerTest, AtariSizeUpdatesAsOnTheCpu) {
  for (const int actions : {6, 18}) {
    const NetworkSpec network = NatureNetwork({.actions = actions, .members = 10, .outputs = 201});
    ExpectSameUpdates({"atari", SpecOf(network, HeadKind::kQuantile, 32)}, 3);
  }
}

// Agents that together use every kind of product, and both sizes of pictures.
std::vector<Agent> AgentsIn(Precision precision) {
  std::vector<Agent> agents;
  for (Agent& agent : Agents()) {
    for (const char* name : {"dqn", "qr-ens-uper", "odd pictures", "pixels four at a time",
                             "first convolution of its own", "mlp"}) {
      if (agent.name == name) agents.push_back(std::move(agent));
    }
  }
  agents.push_back({"atari dqn", SpecOf(NatureNetwork({.actions = 6, .members = 1, .outputs = 1}),
                                        HeadKind::kScalar, 32)});
  agents.push_back(
      {"atari qr-ens-uper", SpecOf(NatureNetwork({.actions = 6, .members = 10, .outputs = 51}),
                                   HeadKind::kQuantile, 32)});
  for (Agent& agent : agents) agent.spec.precision = precision;
  return agents;
}

// How far an update is from that of the CPU.
struct UpdateErrors {
  std::vector<double> values, loss, td_error, gradient;  // one for each update
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Updates, each from the CPU's state, which is in fp32.
UpdateErrors ErrorsOf(const Agent& agent, int updates) {
  LearnerSpec cpu_spec = agent.spec;
  cpu_spec.precision = Precision::kFp32;
  ThreadPool pool(2);
  CpuLearner cpu(cpu_spec, pool);
  CudaLearner gpu(agent.spec);
  Initialize(cpu);
  UpdateErrors errors;
  for (int i = 0; i < updates; ++i) {
    CopyState(cpu, gpu);
    const Data data(agent.spec, "batch " + std::to_string(i));
    std::vector<float> q(std::size_t{1} * agent.spec.batch * agent.spec.network.actions);
    std::vector<float> expected_q(q.size());
    cpu.ActionValues(data.s_tm1, agent.spec.batch, expected_q);
    gpu.ActionValues(data.s_tm1, agent.spec.batch, q);
    errors.values.push_back(RelativeError(q, expected_q));
    const LearnerOutput expected = cpu.Update(data.View());
    const LearnerOutput found = gpu.Update(data.View());
    errors.loss.push_back(std::abs(found.loss - expected.loss) / expected.loss);
    errors.td_error.push_back(RelativeError(found.td_error, expected.td_error));
    const std::span<const float> gradient = gpu.gradient(), expected_gradient = cpu.gradient();
    double largest = 0;
    for (const ParameterView& view : cpu.layout().views()) {
      largest = std::max(largest, GradientError(cpu.layout(), view, gradient, expected_gradient));
    }
    errors.gradient.push_back(largest);
  }
  return errors;
}

// Action values are continuous in the torso's outputs, so that they must always be close. Gradients
// jump where a ReLU turns: one such unit is a few percent of the gradient of a small layer, so that
// the median over updates says how close they are, and none may be another gradient altogether.
TEST_F(CudaLearnerTest, OtherPrecisionsUpdateNearlyAsOnTheCpu) {
  struct Bounds {
    Precision precision;
    double values, loss, gradient, least;
  };
  for (const Bounds& bounds :
       {Bounds{Precision::kTf32, 3e-3, 1e-3, 0.15, 3e-5}, {Precision::kTf32x3, 3e-5, 3e-5, 3e-4}}) {
    for (const Agent& agent : AgentsIn(bounds.precision)) {
      SCOPED_TRACE(testing::Message() << agent.name << " precision " << int(bounds.precision));
      const UpdateErrors errors = ErrorsOf(agent, 7);
      std::printf(
          "%s, precision %d, medians: values %.3g, loss %.3g, TD error %.3g, gradient %.3g\n",
          agent.name.c_str(), int(bounds.precision), Median(errors.values), Median(errors.loss),
          Median(errors.td_error), Median(errors.gradient));
      for (const double error : errors.values) EXPECT_LT(error, bounds.values);
      EXPECT_LT(Median(errors.loss), bounds.loss);
      EXPECT_LT(Median(errors.td_error), bounds.loss);
      EXPECT_LT(Median(errors.gradient), bounds.gradient);
      for (const double error : errors.gradient) EXPECT_LT(error, 0.5);
      EXPECT_GT(Median(errors.gradient), bounds.least);  // it is not fp32
    }
  }
}

// Three updates and a copy of the target in between: what comes out, and the state after it.
std::vector<double> Trained(const LearnerSpec& spec) {
  CudaLearner learner(spec);
  Initialize(learner);
  std::vector<double> all;
  for (int i = 0; i < 3; ++i) {
    const Data data(spec, "batch " + std::to_string(i));
    for (const double number : Statistics(learner.Update(data.View()))) all.push_back(number);
    if (i == 1) learner.CopyTarget();
  }
  for (const float number : Numbers(learner)) all.push_back(double{number});
  return all;
}

TEST_F(CudaLearnerTest, RepeatsBitForBit) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    const std::vector<double> first = Trained(agent.spec);
    for (const double number : first) ASSERT_TRUE(std::isfinite(number));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Trained(agent.spec), first);
  }
}

TEST_F(CudaLearnerTest, OtherPrecisionsRepeatBitForBitAndActAlikeForAnyCount) {
  for (const Precision precision : {Precision::kTf32, Precision::kTf32x3}) {
    for (const Agent& agent : AgentsIn(precision)) {
      SCOPED_TRACE(testing::Message() << agent.name << " precision " << int(precision));
      LearnerSpec fp32 = agent.spec;
      fp32.precision = Precision::kFp32;
      const std::vector<double> first = Trained(agent.spec);
      for (const double number : first) ASSERT_TRUE(std::isfinite(number));
      for (int i = 0; i < 2; ++i) EXPECT_EQ(Trained(agent.spec), first);
      EXPECT_NE(Trained(fp32), first);

      CudaLearner learner(agent.spec);
      Initialize(learner);
      const Data data(agent.spec, "batch");
      const std::size_t bytes = data.s_tm1.size() / agent.spec.batch;
      std::vector<float> all(std::size_t{1} * agent.spec.batch * agent.spec.network.actions);
      learner.ActionValues(data.s_tm1, agent.spec.batch, all);
      for (const int count : {1, std::min(16, agent.spec.batch)}) {
        std::vector<float> some(std::size_t{1} * count * agent.spec.network.actions);
        learner.ActionValues(std::span(data.s_tm1).first(count * bytes), count, some);
        EXPECT_TRUE(SameBits(some, std::span(all).first(some.size()))) << count;
      }
    }
  }
}

TEST_F(CudaLearnerTest, BeginAndFinishAreAnUpdate) {
  const LearnerSpec spec = Agents()[3].spec;
  CudaLearner whole(spec), halves(spec);
  Initialize(whole);
  Initialize(halves);
  for (int i = 0; i < 3; ++i) {
    Data data(spec, "batch " + std::to_string(i));
    halves.BeginUpdate(data.View());
    EXPECT_THROW(halves.BeginUpdate(data.View()), Error);
    const std::vector<double> expected = Statistics(whole.Update(data.View()));
    data.rewards.assign(data.rewards.size(), 100);  // is not read any more
    EXPECT_EQ(Statistics(halves.FinishUpdate()), expected);
    EXPECT_THROW(halves.FinishUpdate(), Error);
  }
  EXPECT_TRUE(SameBits(Numbers(whole), Numbers(halves)));
}

TEST_F(CudaLearnerTest, ActionValuesAreThoseOfTheCpuForAnyCount) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    const LearnerSpec& spec = agent.spec;
    ThreadPool pool(2);
    CpuLearner cpu(spec, pool);
    CudaLearner gpu(spec);
    Initialize(cpu);
    const Data data(spec, "batch");
    for (int round = 0; round < 2; ++round) {  // also after an update
      CopyState(cpu, gpu);
      if (round == 1) {
        cpu.Update(data.View());
        gpu.Update(data.View());
      }
      const std::size_t bytes = data.s_tm1.size() / spec.batch;
      std::vector<float> all(std::size_t{1} * spec.batch * spec.network.actions);
      gpu.ActionValues(data.s_tm1, spec.batch, all);
      std::vector<float> expected(all.size());
      cpu.ActionValues(data.s_tm1, spec.batch, expected);
      EXPECT_LT(RelativeError(all, expected), 1e-5);
      for (const int count : {1, std::min(16, spec.batch)}) {
        std::vector<float> some(std::size_t{1} * count * spec.network.actions);
        gpu.ActionValues(std::span(data.s_tm1).first(count * bytes), count, some);
        EXPECT_TRUE(SameBits(some, std::span(all).first(some.size()))) << count;
      }
    }
  }
}

TEST_F(CudaLearnerTest, ActingDoesNotDisturbLearning) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner acting(agent.spec), quiet(agent.spec);
    Initialize(acting);
    Initialize(quiet);
    std::vector<float> q(std::size_t{1} * agent.spec.batch * agent.spec.network.actions);
    for (int i = 0; i < 3; ++i) {
      const Data data(agent.spec, "batch " + std::to_string(i));
      acting.ActionValues(data.s_t, agent.spec.batch, q);
      EXPECT_EQ(Statistics(acting.Update(data.View())), Statistics(quiet.Update(data.View())));
    }
    EXPECT_TRUE(SameBits(Numbers(acting), Numbers(quiet)));
  }
}

TEST_F(CudaLearnerTest, CopyTargetCopiesAndIsUsed) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner copied(agent.spec), written(agent.spec);
    Initialize(copied);
    Initialize(written);
    const Data data(agent.spec, "batch");
    copied.Update(data.View());
    CopyState(copied, written);
    copied.CopyTarget();
    EXPECT_TRUE(SameBits(copied.State().target, copied.State().online));
    const LearnerState state = written.State();
    std::copy(state.online.begin(), state.online.end(), state.target.begin());
    written.SetUpdated(1);
    EXPECT_LT(RelativeError(Statistics(copied.Update(data.View())),
                            Statistics(written.Update(data.View()))),
              1e-6);
    EXPECT_LT(RelativeError(Numbers(copied), Numbers(written)), 1e-6);
  }
}

TEST_F(CudaLearnerTest, AStateThatIsWrittenBackGoesOnTheSame) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner first(agent.spec), second(agent.spec);
    Initialize(first);
    first.Update(Data(agent.spec, "a").View());
    CopyState(first, second);
    CopyState(first, first);
    const Data data(agent.spec, "b");
    EXPECT_EQ(Statistics(first.Update(data.View())), Statistics(second.Update(data.View())));
    EXPECT_TRUE(SameBits(Numbers(first), Numbers(second)));
  }
}

TEST_F(CudaLearnerTest, WhatIsNotFiniteStopsTheUpdateAndChangesNothing) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const bool reward : {true, false}) {
        CudaLearner learner(agent.spec), untouched(agent.spec);
        Initialize(learner);
        Initialize(untouched);
        const std::vector<float> before = Numbers(learner);
        Data bad(agent.spec, "batch");
        bad.masks.assign(bad.masks.size(), ~std::uint64_t{0});
        (reward ? bad.rewards : bad.weights)[0] = value;
        try {
          learner.Update(bad.View());
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kNumeric) << error.what();
        }
        EXPECT_TRUE(SameBits(Numbers(learner), before));
        const Data good(agent.spec, "good");
        EXPECT_EQ(Statistics(learner.Update(good.View())),
                  Statistics(untouched.Update(good.View())));
        EXPECT_TRUE(SameBits(Numbers(learner), Numbers(untouched)));
      }
    }
  }
}

TEST_F(CudaLearnerTest, WithoutAnyMemberNothingIsLearned) {
  for (const Agent& agent : Agents()) {
    SCOPED_TRACE(agent.name);
    CudaLearner learner(agent.spec);
    Initialize(learner);
    Data data(agent.spec, "batch");
    data.masks.assign(data.masks.size(), 0);
    const std::vector<float> before(learner.State().online.begin(), learner.State().online.end());
    const LearnerOutput output = learner.Update(data.View());
    EXPECT_EQ(output.loss, 0);
    EXPECT_EQ(output.gradient_norm, 0);
    EXPECT_GT(output.td_error[0], 0);
    EXPECT_TRUE(SameBits(learner.State().online, before));
  }
}

TEST_F(CudaLearnerTest, BatchesThatDoNotFitAreRefused) {
  const LearnerSpec spec = Agents()[0].spec;
  CudaLearner learner(spec);
  Data data(spec, "batch");
  data.actions[0] = spec.network.actions;
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.actions[0] = 0;
  data.s_t.pop_back();
  EXPECT_THROW(learner.Update(data.View()), Error);
  data.s_t.push_back({});
  EXPECT_NO_THROW(learner.Update(data.View()));
}

TEST_F(CudaLearnerTest, TooLargeANetworkIsAResourceError) {
  // 480 GB of activations.
  const LearnerSpec spec =
      SpecOf(MlpNetwork(1, {30000}, {.actions = 2, .members = 1, .outputs = 1}), HeadKind::kScalar,
             4000000);
  try {
    CudaLearner learner(spec);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResources) << error.what();
  }
  CudaLearner small(Agents()[0].spec);  // and the GPU is not lost
  EXPECT_NO_THROW(small.Update(Data(Agents()[0].spec, "batch").View()));
}

}  // namespace
}  // namespace uper
