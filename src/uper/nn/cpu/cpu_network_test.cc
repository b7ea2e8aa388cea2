#include "uper/nn/cpu/cpu_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/initialization.h"
#include "uper/nn/learner_data_for_tests.h"
#include "uper/nn/reference_network_for_tests.h"

namespace uper::cpu::cpu_network_test {
namespace {

struct Case {
  std::string name;
  NetworkSpec spec;
  int batch;
};

NetworkSpec Convolutional(const HeadSize& head) {
  return {.input = {.height = 9, .width = 8, .channels = 3},
          .convolutions = {{5, 3, 2}, {6, 2, 1}},
          .hidden_units = 7,
          .actions = head.actions,
          .members = head.members,
          .outputs = head.outputs};
}

// Odd sizes of everything: one member, one output, 18 actions, batches 1, 3, 32, 64.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"scalar", MinatarNetwork(4, {.actions = 6}), 3});
  cases.push_back({"one of all", MlpNetwork(1, {1}, {}), 1});
  cases.push_back({"mlp", MlpNetwork(5, {9, 4, 7}, {.actions = 18, .outputs = 3}), 64});
  cases.push_back({"convolutions", Convolutional({.actions = 4, .members = 3, .outputs = 19}), 32});
  cases.push_back({"scalar ensemble", Convolutional({.actions = 3, .members = 5}), 3});
  cases.push_back({"one sample", Convolutional({.actions = 18, .members = 2, .outputs = 17}), 1});

  NetworkSpec separate = Convolutional({.actions = 3, .members = 4, .outputs = 5});
  separate.separate_hidden = true;
  separate.dense = {11};
  cases.push_back({"separate", separate, 7});
  separate.outputs = 1;
  cases.push_back({"separate scalars", separate, 7});

  NetworkSpec shared = Convolutional({.actions = 5});
  shared.shared_output_bias = true;
  cases.push_back({"shared bias", shared, 6});
  shared.outputs = 4;
  shared.members = 2;
  cases.push_back({"shared bias of an ensemble", shared, 6});

  NetworkSpec planes = Convolutional({.actions = 2, .members = 2, .outputs = 4});
  planes.input.layout = InputLayout::kPlanes;
  planes.input.type = InputType::kUint8;
  planes.input.scale = 1.0F / 255.0F;
  planes.input.channels = 4;
  cases.push_back({"planes of bytes", planes, 4});
  return cases;
}

// Observations of a batch, as bytes for the network and as doubles for the reference one.
struct Observations {
  Observations(const NetworkSpec& spec, int batch) : spec_(spec) {
    const int size = spec.observation_size();
    const auto floats = RandomFloats(std::size_t{1} * batch * size, "observations");
    const auto pixels = RandomInts(floats.size(), 256, "pixels");
    const bool is_bytes = spec.input.type == InputType::kUint8;
    bytes.resize(floats.size() * (is_bytes ? 1 : sizeof(float)));
    for (std::size_t i = 0; i < floats.size(); ++i) {
      values.push_back(is_bytes ? pixels[i] : double{floats[i]});
      if (is_bytes) bytes[i] = static_cast<std::byte>(pixels[i]);
    }
    if (!is_bytes) std::memcpy(bytes.data(), floats.data(), bytes.size());
  }

  // Sample b as [height, width, channels], scaled.
  std::vector<double> Sample(int b) const {
    const int size = spec_.observation_size();
    const int channels = spec_.input.channels;
    const int pixels = size / channels;
    const bool planes = spec_.input.layout == InputLayout::kPlanes;
    std::vector<double> x(size);
    for (int i = 0; i < size; ++i) {
      const int from = planes ? i % channels * pixels + i / channels : i;
      x[i] = values[std::size_t{1} * b * size + from] * double{spec_.input.scale};
    }
    return x;
  }

  std::vector<std::byte> bytes;
  std::vector<double> values;

 private:
  NetworkSpec spec_;
};

FloatBuffer RandomParameters(const ParameterLayout& layout) {
  FloatBuffer parameters(layout.size());
  RandomStream stream(11, "parameters");
  InitializeUniform(layout, stream, parameters.span());
  return parameters;
}

std::vector<double> Doubles(const FloatBuffer& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

// All results of a network for a case, with parameters of its own.
struct Results {
  std::vector<float> hidden, taken, per_member, all, means, mean, gradient;

  std::vector<float> Joined() const {
    std::vector<float> joined;
    for (const auto* part : {&hidden, &taken, &per_member, &all, &means, &mean, &gradient}) {
      joined.insert(joined.end(), part->begin(), part->end());
    }
    return joined;
  }
};

// d_out with the rows of some (sample, member) pairs masked.
std::vector<float> RandomDerivative(const NetworkSpec& spec, int batch) {
  auto d_out = RandomFloats(std::size_t{1} * batch * spec.member_outputs(), "d_out");
  const auto masks = RandomInts(std::size_t{1} * batch * spec.members, 3, "masks");
  for (std::size_t i = 0; i < d_out.size(); ++i) {
    if (masks[i / spec.outputs] == 0) d_out[i] = 0;
  }
  return d_out;
}

std::vector<int> TakenActions(const Case& c) {
  return RandomInts(c.batch, c.spec.actions, "taken actions");
}
std::vector<int> MemberActions(const Case& c) {
  return RandomInts(std::size_t{1} * c.batch * c.spec.members, c.spec.actions, "member actions");
}

// The whole gradient; returns its squared norm.
double FullGradient(CpuNetwork& network, std::span<const float> parameters,
                    const std::vector<int>& actions, const std::vector<float>& d_out,
                    std::span<float> gradient) {
  const double squares = network.Backward(0, parameters, actions, d_out, gradient);
  network.HeadGradient(0, actions, d_out, gradient);
  return squares;
}

Results RunAll(const Case& c, ThreadPool& pool) {
  const NetworkSpec& spec = c.spec;
  CpuNetwork network(spec, {.max_batch = c.batch + 3}, pool);
  const FloatBuffer parameters = RandomParameters(network.layout());
  const Observations observations(spec, c.batch);
  const std::size_t batch = c.batch;
  Results r;
  r.taken.resize(batch * spec.member_outputs());
  r.per_member.resize(r.taken.size());
  r.all.resize(r.taken.size() * spec.actions);
  r.means.resize(batch * spec.members * spec.actions);
  r.mean.resize(batch * spec.actions);
  r.gradient.assign(network.layout().size(), 123);  // an entry that is never written would show

  const auto hidden = network.Forward(0, parameters.span(), observations.bytes, c.batch);
  r.hidden.assign(hidden.begin(), hidden.end());
  HeadMeanWeights mean_weights(spec);
  network.ComputeHeadMeanWeights(parameters.span(), mean_weights);
  network.HeadTaken(0, parameters.span(), TakenActions(c), r.taken);
  network.HeadPerMember(0, parameters.span(), MemberActions(c), r.per_member);
  network.HeadAll(0, parameters.span(), r.all);
  network.HeadMemberMeans(0, mean_weights, r.means);
  network.HeadEnsembleMean(0, mean_weights, r.mean);
  FullGradient(network, parameters.span(), TakenActions(c), RandomDerivative(spec, c.batch),
               r.gradient);
  return r;
}

// The results of the reference network, except for the gradient.
struct Expectations {
  std::vector<double> hidden, taken, per_member, all, means, mean;
};

Expectations Expect(const Case& c) {
  const NetworkSpec& spec = c.spec;
  const ReferenceNetwork reference(spec);
  const std::vector<double> p = Doubles(RandomParameters(ParameterLayout(spec)));
  const Observations observations(spec, c.batch);
  const auto taken = TakenActions(c);
  const auto member = MemberActions(c);
  Expectations e;
  for (int b = 0; b < c.batch; ++b) {
    const std::vector<double> hidden = reference.Hidden(p, observations.Sample(b));
    e.hidden.insert(e.hidden.end(), hidden.begin(), hidden.end());
    std::vector<double> means(std::size_t{1} * spec.members * spec.actions);
    std::vector<double> mean(spec.actions);
    for (int a = 0; a < spec.actions; ++a) {
      for (int k = 0; k < spec.members; ++k) {
        for (int m = 0; m < spec.outputs; ++m) {
          const double z = reference.Output(p, hidden, a, k, m);
          e.all.push_back(z);
          means[k * spec.actions + a] += z / spec.outputs;
          mean[a] += z / spec.outputs / spec.members;
        }
      }
    }
    for (int k = 0; k < spec.members; ++k) {
      for (int m = 0; m < spec.outputs; ++m) {
        e.taken.push_back(reference.Output(p, hidden, taken[b], k, m));
        e.per_member.push_back(reference.Output(p, hidden, member[b * spec.members + k], k, m));
      }
    }
    e.means.insert(e.means.end(), means.begin(), means.end());
    e.mean.insert(e.mean.end(), mean.begin(), mean.end());
  }
  return e;
}

TEST(CpuNetworkTest, ForwardAndHeadsAgreeWithTheReferenceNetwork) {
  ThreadPool pool(2);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Results r = RunAll(c, pool);
    const Expectations e = Expect(c);
    constexpr double kTolerance = 2e-6;
    EXPECT_LT(RelativeError(r.hidden, e.hidden), kTolerance);
    EXPECT_LT(RelativeError(r.taken, e.taken), kTolerance);
    EXPECT_LT(RelativeError(r.per_member, e.per_member), kTolerance);
    EXPECT_LT(RelativeError(r.all, e.all), kTolerance);
    EXPECT_LT(RelativeError(r.means, e.means), kTolerance);
    EXPECT_LT(RelativeError(r.mean, e.mean), kTolerance);
  }
}

// sum of d_out * (output of the taken action), of which FullGradient() is the gradient.
double ReferenceLoss(const Case& c, const ReferenceNetwork& reference, const std::vector<double>& p,
                     const Observations& observations, const std::vector<int>& actions,
                     const std::vector<float>& d_out) {
  double loss = 0;
  for (int b = 0; b < c.batch; ++b) {
    const std::vector<double> hidden = reference.Hidden(p, observations.Sample(b));
    for (int i = 0; i < c.spec.member_outputs(); ++i) {
      loss += double{d_out[std::size_t{1} * b * c.spec.member_outputs() + i]} *
              reference.Output(p, hidden, actions[b], i / c.spec.outputs, i % c.spec.outputs);
    }
  }
  return loss;
}

TEST(CpuNetworkTest, GradientAgreesWithCentralDifferences) {
  ThreadPool pool(2);
  for (Case c : Cases()) {
    if (c.batch > 7) c.batch = 7;
    if (c.name == "scalar") c.spec.hidden_units = 3;
    SCOPED_TRACE(c.name);
    const ParameterLayout layout(c.spec);
    const ReferenceNetwork reference(c.spec);
    const Observations observations(c.spec, c.batch);
    const auto d_out = RandomDerivative(c.spec, c.batch);
    const auto actions = TakenActions(c);
    std::vector<double> p = Doubles(RandomParameters(layout));
    const std::vector<float> gradient = RunAll(c, pool).gradient;
    for (const ParameterView& view : layout.views()) {
      std::vector<double> expected;
      std::vector<float> result;
      for (std::size_t i = view.offset; i < view.offset + view.size(); ++i) {
        constexpr double kStep = 1e-6;
        const double before = p[i];
        p[i] = before + kStep;
        const double above = ReferenceLoss(c, reference, p, observations, actions, d_out);
        p[i] = before - kStep;
        const double below = ReferenceLoss(c, reference, p, observations, actions, d_out);
        p[i] = before;
        expected.push_back((above - below) / (2 * kStep));
        result.push_back(gradient[i]);
      }
      const bool all_zero = std::ranges::all_of(expected, [](double x) { return x == 0; });
      if (all_zero) {  // a masked member or a dead unit
        EXPECT_EQ(result, std::vector<float>(result.size())) << view.name;
      } else {
        EXPECT_LT(RelativeError(result, expected), 3e-6) << view.name;
      }
    }
  }
}

// Large enough that all threads get work in every phase.
Case LargeCase(bool separate) {
  NetworkSpec spec{.input = {.height = 20, .width = 19, .channels = 3},
                   .convolutions = {{8, 4, 2}, {12, 3, 1}},
                   .dense = {150},
                   .hidden_units = 130,
                   .actions = 5,
                   .members = 4,
                   .outputs = 33,
                   .separate_hidden = separate};
  return {"large", spec, 33};
}

TEST(ConcurrentCpuNetworkTest, SameBitsForAnyThreadsAndInstructionSet) {
  std::vector<Case> cases = Cases();
  cases.push_back(LargeCase(false));
  cases.push_back(LargeCase(true));
  for (const Case& c : cases) {
    std::vector<float> first;
    for (const std::int64_t target : RunnableSimdTargets()) {
      UseSimdTarget(target);
      for (const int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads);
        const std::vector<float> joined = RunAll(c, pool).Joined();
        if (first.empty()) first = joined;
        EXPECT_TRUE(SameBits(joined, first))
            << c.name << ", " << SimdTargetName() << ", " << threads << " threads";
      }
    }
  }
  UseSimdTarget(0);
}

TEST(CpuNetworkTest, ASampleIsTheSameAloneAndInABatch) {
  ThreadPool pool(2);
  for (Case c : {LargeCase(false), Cases()[0]}) {
    c.batch = 16;
    CpuNetwork network(c.spec, {.max_batch = 16}, pool);
    const FloatBuffer parameters = RandomParameters(network.layout());
    const Observations observations(c.spec, c.batch);
    HeadMeanWeights mean_weights(c.spec);
    network.ComputeHeadMeanWeights(parameters.span(), mean_weights);
    const auto actions = TakenActions(c);
    const std::size_t outputs = c.spec.member_outputs();
    const std::size_t q_size = c.spec.actions;
    std::vector<float> batch_out(16 * outputs), batch_q(16 * q_size), out(outputs), q(q_size);
    network.Forward(0, parameters.span(), observations.bytes, 16);
    network.HeadTaken(0, parameters.span(), actions, batch_out);
    network.HeadEnsembleMean(0, mean_weights, batch_q);
    const std::size_t bytes = observations.bytes.size() / 16;
    for (int b = 0; b < 16; ++b) {
      network.Forward(1, parameters.span(), std::span(observations.bytes).subspan(b * bytes, bytes),
                      1);
      network.HeadTaken(1, parameters.span(), std::span(actions).subspan(b, 1), out);
      network.HeadEnsembleMean(1, mean_weights, q);
      EXPECT_TRUE(SameBits(out, std::span(batch_out).subspan(b * outputs, outputs))) << b;
      EXPECT_TRUE(SameBits(q, std::span(batch_q).subspan(b * q_size, q_size))) << b;
    }
  }
}

TEST(CpuNetworkTest, AScalarHeadsMeanIsItself) {
  // One member with one output has no average: mean weights and the full head give the same bits.
  ThreadPool pool(1);
  const Results r = RunAll(Cases()[0], pool);
  EXPECT_TRUE(SameBits(r.mean, r.all));
  EXPECT_TRUE(SameBits(r.means, r.all));
}

TEST(CpuNetworkTest, PassesKeepTheirActivations) {
  ThreadPool pool(1);
  const Case c = Cases()[3];
  CpuNetwork network(c.spec, {.max_batch = c.batch}, pool);
  const FloatBuffer parameters = RandomParameters(network.layout());
  const FloatBuffer zeros(network.layout().size());
  const Observations observations(c.spec, c.batch);
  const auto actions = TakenActions(c);
  const auto d_out = RandomDerivative(c.spec, c.batch);
  std::vector<float> alone(network.layout().size()), between(network.layout().size());
  network.Forward(0, parameters.span(), observations.bytes, c.batch);
  FullGradient(network, parameters.span(), actions, d_out, alone);
  network.Forward(0, parameters.span(), observations.bytes, c.batch);
  const std::size_t bytes = observations.bytes.size() / c.batch;
  network.Forward(1, zeros.span(), std::span(observations.bytes).first(2 * bytes), 2);
  EXPECT_EQ(network.batch(0), c.batch);
  EXPECT_EQ(network.batch(1), 2);
  FullGradient(network, parameters.span(), actions, d_out, between);
  EXPECT_TRUE(SameBits(alone, between));
}

// Parameters and optimizer state, before and after an update.
struct OptimizerState {
  explicit OptimizerState(const ParameterLayout& layout)
      : p(RandomFloats(layout.size(), "p")),
        m(RandomFloats(layout.size(), "m")),
        v(RandomFloats(layout.size(), "v")) {
    for (float& value : v) value *= value;
  }
  OptimizerBuffers With(std::span<const float> gradient) { return {p, gradient, m, v}; }

  std::vector<float> p, m, v;
};

TEST(CpuNetworkTest, AStepWithoutTheHeadsGradientIsTheStepWithIt) {
  std::vector<Case> cases = Cases();
  cases.push_back(LargeCase(false));
  cases.push_back(LargeCase(true));
  cases.push_back(LargeCase(false));
  cases.back().spec.shared_output_bias = true;
  const OptimizerUpdate updates[] = {OptimizerUpdate(AdamOptions{}, 3, 0.7),
                                     OptimizerUpdate(RmsPropOptions{}, 0.7)};
  for (const Case& c : cases) {
    for (const OptimizerUpdate& update : updates) {
      SCOPED_TRACE(c.name);
      ThreadPool pool(2);
      CpuNetwork network(c.spec, {.max_batch = c.batch}, pool);
      OptimizerState fused(network.layout()), plain(network.layout());
      const auto actions = TakenActions(c);
      const auto d_out = RandomDerivative(c.spec, c.batch);
      std::vector<float> gradient(network.layout().size(), 123);
      network.Forward(0, fused.p, Observations(c.spec, c.batch).bytes, c.batch);
      const double squares = network.Backward(0, fused.p, actions, d_out, gradient);
      network.Update(0, d_out, update, fused.With(gradient));
      network.HeadGradient(0, actions, d_out, gradient);
      update.Apply(plain.With(gradient));
      EXPECT_TRUE(SameBits(fused.p, plain.p));
      EXPECT_TRUE(SameBits(fused.m, plain.m));
      EXPECT_TRUE(SameBits(fused.v, plain.v));
      double expected = 0;
      for (const float g : gradient) expected += double{g} * double{g};
      EXPECT_NEAR(squares, expected, 1e-6 * expected);
    }
  }
}

TEST(CpuNetworkTest, PoisonedParametersAreNotHidden) {
  ThreadPool pool(1);
  const Case c = Cases()[0];
  CpuNetwork network(c.spec, {.max_batch = c.batch}, pool);
  FloatBuffer parameters = RandomParameters(network.layout());
  parameters[network.layout().Find("conv1/b").offset] = std::nanf("");
  const Observations observations(c.spec, c.batch);
  for (const float value : network.Forward(0, parameters.span(), observations.bytes, c.batch)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(CpuNetworkTest, SizesAreChecked) {
  ThreadPool pool(1);
  const Case c = Cases()[0];
  CpuNetwork network(c.spec, {.max_batch = c.batch}, pool);
  const FloatBuffer parameters = RandomParameters(network.layout());
  const Observations observations(c.spec, c.batch);
  std::vector<float> out(c.batch), gradient(network.layout().size());
  const std::vector<int> actions(c.batch, 0), bad(c.batch, 6);
  const auto p = parameters.span();
  EXPECT_THROW(network.HeadTaken(0, p, actions, out), Error);  // no forward pass yet
  EXPECT_THROW(network.Forward(2, p, observations.bytes, c.batch), Error);
  EXPECT_THROW(network.Forward(0, p, observations.bytes, c.batch + 1), Error);
  EXPECT_THROW(network.Forward(0, p, observations.bytes, c.batch - 1), Error);
  EXPECT_THROW(network.Forward(0, p.first(10), observations.bytes, c.batch), Error);
  network.Forward(0, p, observations.bytes, c.batch);
  EXPECT_NO_THROW(network.HeadTaken(0, p, actions, out));
  EXPECT_THROW(network.HeadTaken(0, p, bad, out), Error);
  EXPECT_THROW(network.HeadTaken(0, p, actions, std::span(out).first(1)), Error);
  EXPECT_THROW(network.HeadAll(0, p, out), Error);
  EXPECT_THROW(network.Backward(0, p, actions, out, std::span(gradient).first(3)), Error);
  EXPECT_THROW(CpuNetwork(c.spec, {.max_batch = 0}, pool), Error);
}

}  // namespace
}  // namespace uper::cpu::cpu_network_test
