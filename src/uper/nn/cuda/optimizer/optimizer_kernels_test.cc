#include "uper/nn/cuda/optimizer/optimizer_kernels.h"

#include <cmath>

#include "uper/nn/cpu/cpu_optimizer.h"
#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

using AnyOptimizer = std::variant<AdamOptions, RmsPropOptions>;

std::vector<AnyOptimizer> Optimizers() {
  return {AdamOptions{}, RmsPropOptions{},
          RmsPropOptions{.epsilon_placement = EpsilonPlacement::kOutsideRoot}};
}

void StepOnCpu(const AnyOptimizer& optimizer, std::int64_t step, double scale,
               const cpu::OptimizerBuffers& buffers) {
  if (const auto* adam = std::get_if<AdamOptions>(&optimizer)) {
    cpu::OptimizerUpdate(*adam, step, scale).Apply(buffers);
  } else {
    cpu::OptimizerUpdate(std::get<RmsPropOptions>(optimizer), scale).Apply(buffers);
  }
}

double Squares(const std::vector<float>& g) {
  double squares = 0;
  for (const float x : g) squares += double{x} * double{x};
  return squares;
}

// Finishes an update whose loss is the sum of `members`.
UpdateState Finish(FinishUpdate call, double squares, const std::vector<MemberLoss>& members,
                   DeviceBuffer<UpdateState>& state) {
  const DeviceBuffer<double> parts = OnGpu(std::vector<double>(300, squares / 300));
  PinnedBuffer<UpdateState> report(1);
  const DeviceBuffer<MemberLoss> statistics = OnGpu(members);
  LaunchBeginUpdate(call.rules, state.data(), nullptr);
  call.squares = parts.data();
  call.square_count = static_cast<int>(parts.size());
  call.members = statistics.data();
  call.member_count = static_cast<int>(members.size());
  call.state = state.data();
  call.report = report.data();
  LaunchFinishUpdate(call, nullptr);
  const UpdateState found = FromGpu(state)[0];
  EXPECT_EQ(report[0].updates, found.updates);
  EXPECT_EQ(report[0].gradient_norm, found.gradient_norm);
  EXPECT_EQ(report[0].finite, found.finite);
  return found;
}

class OptimizerKernelsTest : public GpuTest {};

TEST_F(OptimizerKernelsTest, StepsAsOnTheCpuAndLeavesTheRestAlone) {
  constexpr std::size_t kSize = 100003;
  const GradientRange range{5, 90001};
  for (const AnyOptimizer& optimizer : Optimizers()) {
    for (const double max_norm : {0.0, 10.0}) {
      std::vector<float> p = RandomFloats(kSize, "p"), m(kSize), v(kSize);
      DeviceBuffer<float> gpu_p = OnGpu(p), gpu_m = OnGpu(m), gpu_v = OnGpu(v);
      DeviceBuffer<UpdateState> state(1);
      const OptimizerRules rules = RulesOf(optimizer, max_norm);
      for (int step = 1; step <= 3; ++step) {
        std::vector<float> g = RandomFloats(kSize, std::to_string(step) + " g");
        const DeviceBuffer<float> gpu_g = OnGpu(g);
        for (std::size_t i = 0; i < kSize; ++i) {
          if (i < range.begin || i >= range.end) g[i] = 0;
        }
        const double norm = std::sqrt(Squares(g));
        const ParameterBlock block{gpu_p.data(), gpu_m.data(), gpu_v.data()};
        const UpdateState found = Finish({.rules = rules,
                                          .gradient = gpu_g.data(),
                                          .parameters = {block, block},
                                          .remaining = range},
                                         Squares(g), {{.share = 0.5}, {.share = 0.25}}, state);
        EXPECT_EQ(found.updates, step);
        EXPECT_EQ(found.loss, 0.75);
        EXPECT_NEAR(found.gradient_norm, norm, 1e-12 * norm);
        StepOnCpu(optimizer, step, max_norm > 0 ? ClipScale(norm, max_norm) : 1,
                  {.parameters = p, .gradient = g, .m = m, .v = v});
      }
      const std::vector<float> first = RandomFloats(kSize, "p");
      for (std::size_t i = 0; i < kSize; ++i) {
        if (i < range.begin || i >= range.end) p[i] = first[i];
      }
      EXPECT_LT(RelativeError(FromGpu(gpu_p), p), 2e-7);
      EXPECT_LT(RelativeError(FromGpu(gpu_m), m), 2e-7);
      EXPECT_LT(RelativeError(FromGpu(gpu_v), v), 2e-7);
    }
  }
}

TEST_F(OptimizerKernelsTest, WhatIsNotFiniteChangesNothing) {
  const std::vector<float> p = RandomFloats(100, "p");
  DeviceBuffer<float> gpu_p = OnGpu(p), m(100), v(100);
  const DeviceBuffer<float> g = OnGpu(RandomFloats(100, "g"));
  DeviceBuffer<UpdateState> state(1);
  const ParameterBlock block{gpu_p.data(), m.data(), v.data()};
  const UpdateState found = Finish({.rules = RulesOf(AdamOptions{}, 0),
                                    .gradient = g.data(),
                                    .parameters = {block, block},
                                    .remaining = {0, 50},
                                    .speculative = {50, 100}},
                                   1, {{.share = std::nan("")}}, state);
  EXPECT_EQ(found.finite, 0);
  EXPECT_EQ(found.updates, 0);
  EXPECT_TRUE(SameBits(FromGpu(gpu_p), p));
}

TEST_F(OptimizerKernelsTest, ASpeculativeUpdateIsRedoneOnlyIfTheGradientWasClipped) {
  constexpr std::size_t kSize = 1000;
  const std::vector<float> p = RandomFloats(kSize, "p"), gradient = RandomFloats(kSize, "g");
  const DeviceBuffer<float> g = OnGpu(gradient);
  for (const double max_norm : {1e6, 1e-2}) {
    DeviceBuffer<float> from = OnGpu(p), zeros(kSize), to = Poisoned(kSize), m(kSize), v(kSize);
    DeviceBuffer<UpdateState> state(1);
    Finish(
        {.rules = RulesOf(AdamOptions{}, max_norm),
         .gradient = g.data(),
         .parameters = {{from.data(), zeros.data(), zeros.data()}, {to.data(), m.data(), v.data()}},
         .remaining = {0, 10},
         .speculative = {10, kSize}},
        Squares(gradient), {}, state);
    const std::vector<float> found = FromGpu(to);
    for (std::size_t i = 0; i < kSize; ++i)
      EXPECT_EQ(std::isnan(found[i]), i >= 10 && max_norm > 1);
  }
}

TEST_F(OptimizerKernelsTest, TheBiasAndItsAverages) {
  for (const auto& [outputs, shared] : {std::pair(7, false), {300, false}, {7, true}}) {
    const HeadShape s{
        .actions = 3, .members = 10, .hidden = 1, .outputs = outputs, .shared_bias = shared};
    const std::size_t first = 4, size = shared ? 1 : 30 * outputs;
    std::vector<float> p = RandomFloats(first + size, "p"), m(first + size), v(first + size);
    const std::vector<float> g = RandomFloats(first + size, "g");
    const DeviceBuffer<float> gpu_g = OnGpu(g);
    DeviceBuffer<float> gpu_p = OnGpu(p), gpu_m(p.size()), gpu_v(p.size());
    DeviceBuffer<float> member_bias = Poisoned(30);
    DeviceBuffer<UpdateState> state(1);
    const ParameterBlock block{gpu_p.data(), gpu_m.data(), gpu_v.data()};
    Finish({.rules = RulesOf(AdamOptions{}, 0),
            .gradient = gpu_g.data(),
            .parameters = {block, block},
            .remaining = {0, first},
            .shape = s,
            .bias = first,
            .mean_weights = {.member_bias = member_bias.data()}},
           Squares(g), {}, state);
    StepOnCpu(AdamOptions{}, 1, 1, {.parameters = p, .gradient = g, .m = m, .v = v});
    EXPECT_LT(RelativeError(FromGpu(gpu_p), p), 2e-7);
    std::vector<double> member_means;
    for (int k = 0; k < s.members; ++k) {
      for (int a = 0; a < s.actions; ++a) {
        double mean = 0;
        for (int j = 0; j < s.outputs; ++j) {
          mean += double{p[first + (shared ? 0 : (a * s.members + k) * s.outputs + j)]} / s.outputs;
        }
        member_means.push_back(mean);
      }
    }
    EXPECT_LT(RelativeError(FromGpu(member_bias), member_means), 1e-6);
    // A learner that continues from saved parameters has the same bits.
    DeviceBuffer<float> w(std::size_t{30} * outputs), weights(30), ensemble_weights(30),
        loaded_bias = Poisoned(30);
    LaunchHeadMeanWeights(s, w.data(), gpu_p.data() + first,
                          {weights.data(), loaded_bias.data(), ensemble_weights.data()}, nullptr);
    EXPECT_TRUE(SameBits(FromGpu(loaded_bias), FromGpu(member_bias)));
  }
}

// A head and a batch for it.
struct HeadCase {
  HeadShape shape;
  int batch = 13;
  std::uint64_t members = 7;  // members that may learn, as a mask
};

std::vector<HeadCase> HeadCases() {
  return {
      {{.actions = 1, .members = 1, .hidden = 1, .outputs = 1}},
      {{.actions = 2, .members = 2, .hidden = 130, .outputs = 1}},
      {{.actions = 2, .members = 2, .hidden = 132, .outputs = 3}, 33},
      {{.actions = 5, .members = 3, .hidden = 19, .outputs = 201}},
      {{.actions = 1, .members = 1, .hidden = 8, .outputs = 33}},
      {{.actions = 2, .members = 3, .hidden = 5, .outputs = 64}},
      {{.actions = 4, .members = 2, .hidden = 68, .outputs = 50}, 1},
      {{.actions = 1, .members = 2, .hidden = 100, .outputs = 51}, 33},  // all take the same action
      {{.actions = 3, .members = 2, .hidden = 7, .outputs = 127}},
      {{.actions = 2, .members = 1, .hidden = 600, .outputs = 500}, 40},
      {{.actions = 18, .members = 10, .hidden = 64, .outputs = 201}, 32, 0x3ff},
      {{.actions = 2, .members = 2, .hidden = 16, .outputs = 300, .separate_hidden = true}},
      {{.actions = 2, .members = 2, .hidden = 9, .outputs = 300, .separate_hidden = true}}};
}

// Inputs of the gradients of a case: random numbers on the GPU.
class HeadBatch {
 public:
  explicit HeadBatch(const HeadCase& head)
      : batch_(head.batch),
        actions_(OnGpu(RandomInts(batch_, head.shape.actions, "actions"))),
        masks_(OnGpu(Masks(head))),
        hidden_(OnGpu(RandomFloats(std::size_t{1} * batch_ * head.shape.hidden_total(), "hidden"))),
        d_out_(OnGpu(RandomFloats(std::size_t{1} * batch_ * head.shape.members * head.shape.outputs,
                                  "d"))) {}

  HeadGradient gradient() const {
    return {.batch = batch_,
            .actions = actions_.data(),
            .masks = masks_.data(),
            .hidden = hidden_.data(),
            .d_out = d_out_.data()};
  }

 private:
  static std::vector<std::uint64_t> Masks(const HeadCase& head) {
    std::vector<std::uint64_t> bits;
    for (const int mask : RandomInts(head.batch, 1024, "masks"))
      bits.push_back(mask & head.members);
    return bits;
  }

  const int batch_;
  const DeviceBuffer<int> actions_;
  const DeviceBuffer<std::uint64_t> masks_;
  const DeviceBuffer<float> hidden_, d_out_;
};

TEST_F(OptimizerKernelsTest, TheHeadIsUpdatedByAGradientThatIsNeverStored) {
  for (const AnyOptimizer& optimizer : Optimizers()) {
    for (const HeadCase& head : HeadCases()) {
      const HeadShape& s = head.shape;
      SCOPED_TRACE(testing::Message()
                   << s.hidden << " x " << s.outputs << ", batch " << head.batch);
      const std::size_t size = std::size_t{1} * s.actions * s.members * s.hidden * s.outputs;
      std::vector<float> p = RandomFloats(size, "p"), m(size), v(size);
      DeviceBuffer<float> gpu_p = OnGpu(p), gpu_m = OnGpu(m), gpu_v = OnGpu(v);
      const HeadBatch samples(head);
      const HeadGradient gradient = samples.gradient();
      DeviceBuffer<float> dw(size);
      LaunchHeadWeights(s, gradient, dw.data(), nullptr);
      const std::vector<float> stored_gradient = FromGpu(dw);
      const OptimizerRules rules = RulesOf(optimizer, 0);
      DeviceBuffer<UpdateState> state(1);
      DeviceBuffer<float> member_weights =
          Poisoned(std::size_t{1} * s.members * s.hidden * s.actions);
      DeviceBuffer<float> ensemble_weights =
          Poisoned(std::size_t{1} * s.hidden_total() * s.actions);
      DeviceBuffer<unsigned> members_done(s.actions * HeadUpdateGroups(s));
      const ParameterBlock block{gpu_p.data(), gpu_m.data(), gpu_v.data()};
      for (int step = 1; step <= 2; ++step) {
        Finish({.rules = rules}, 1, {}, state);
        const HeadMeanWeightPointers mean_weights{.member_weights = member_weights.data(),
                                                  .ensemble_weights = ensemble_weights.data(),
                                                  .members_done = members_done.data()};
        const auto launch = [&](OptimizerPass pass) {
          LaunchHeadOptimizer(rules, pass, s, gradient, {block, block}, state.data(), mean_weights,
                              nullptr);
        };
        if (step == 1) {
          launch(OptimizerPass::kFinal);
        } else {
          launch(OptimizerPass::kSpeculative);
          Finish({.rules = rules,
                  .shape = s,
                  .mean_weights = {.member_weights = member_weights.data(),
                                   .ensemble_weights = ensemble_weights.data()}},
                 1, {}, state);
          launch(OptimizerPass::kRedo);  // does nothing: nothing was clipped
        }
        StepOnCpu(optimizer, step, 1,
                  {.parameters = p, .gradient = stored_gradient, .m = m, .v = v});
      }
      EXPECT_LT(RelativeError(FromGpu(gpu_p), p), 1e-6);
      EXPECT_LT(RelativeError(FromGpu(gpu_m), m), 1e-6);
      EXPECT_LT(RelativeError(FromGpu(gpu_v), v), 1e-6);
      for (const unsigned count : FromGpu(members_done)) EXPECT_EQ(count, 0U);
      // The means are those of the new weights.
      DeviceBuffer<float> loaded_member_weights(member_weights.size()),
          loaded_ensemble_weights(ensemble_weights.size());
      DeviceBuffer<float> bias(std::size_t{1} * s.actions * s.members * s.outputs);
      DeviceBuffer<float> member_bias(std::size_t{1} * s.members * s.actions);
      LaunchHeadMeanWeights(
          s, gpu_p.data(), bias.data(),
          {loaded_member_weights.data(), member_bias.data(), loaded_ensemble_weights.data()},
          nullptr);
      EXPECT_TRUE(SameBits(FromGpu(member_weights), FromGpu(loaded_member_weights)));
      EXPECT_TRUE(SameBits(FromGpu(ensemble_weights), FromGpu(loaded_ensemble_weights)));
    }
  }
}

// A speculative update and its redo, when the gradient is clipped, equal one final update. This
// also holds for weights without a gradient, which the redo does not touch.
TEST_F(OptimizerKernelsTest, ARedoneUpdateEqualsAFinalUpdate) {
  for (const AnyOptimizer& optimizer : Optimizers()) {
    for (const HeadCase& head : HeadCases()) {
      const HeadShape& s = head.shape;
      SCOPED_TRACE(testing::Message()
                   << s.hidden << " x " << s.outputs << ", batch " << head.batch);
      const std::size_t size = std::size_t{1} * s.actions * s.members * s.hidden * s.outputs;
      const HeadBatch samples(head);
      const HeadGradient gradient = samples.gradient();
      std::vector<float> squares = RandomFloats(size, "v");
      for (float& x : squares) x = 1 + x * x;  // above those of m
      DeviceBuffer<float> p = OnGpu(RandomFloats(size, "p")), m = OnGpu(RandomFloats(size, "m")),
                          v = OnGpu(squares);
      const OptimizerRules rules = RulesOf(optimizer, 0.5);
      struct Result {
        std::vector<float> p, m, v, member_weights, ensemble_weights;
      };
      const auto update = [&](bool speculative) {
        DeviceBuffer<float> new_p = Poisoned(size), new_m = Poisoned(size), new_v = Poisoned(size);
        DeviceBuffer<float> member_weights =
            Poisoned(std::size_t{1} * s.members * s.hidden * s.actions);
        DeviceBuffer<float> ensemble_weights =
            Poisoned(std::size_t{1} * s.hidden_total() * s.actions);
        DeviceBuffer<unsigned> members_done(s.actions * HeadUpdateGroups(s));
        DeviceBuffer<UpdateState> state(1);
        const HeadMeanWeightPointers mean_weights{.member_weights = member_weights.data(),
                                                  .ensemble_weights = ensemble_weights.data(),
                                                  .members_done = members_done.data()};
        const auto launch = [&](OptimizerPass pass) {
          LaunchHeadOptimizer(
              rules, pass, s, gradient,
              {{p.data(), m.data(), v.data()}, {new_p.data(), new_m.data(), new_v.data()}},
              state.data(), mean_weights, nullptr);
        };
        LaunchBeginUpdate(rules, state.data(), nullptr);
        if (speculative) launch(OptimizerPass::kSpeculative);
        state = DeviceBuffer<UpdateState>(1);
        EXPECT_LT(Finish({.rules = rules}, 4, {}, state).gradient_scale, 1);
        launch(speculative ? OptimizerPass::kRedo : OptimizerPass::kFinal);
        return Result{FromGpu(new_p), FromGpu(new_m), FromGpu(new_v), FromGpu(member_weights),
                      FromGpu(ensemble_weights)};
      };
      const Result redone = update(true), one_pass = update(false);
      EXPECT_TRUE(SameBits(redone.p, one_pass.p));
      EXPECT_TRUE(SameBits(redone.m, one_pass.m));
      EXPECT_TRUE(SameBits(redone.v, one_pass.v));
      EXPECT_TRUE(SameBits(redone.member_weights, one_pass.member_weights));
      EXPECT_TRUE(SameBits(redone.ensemble_weights, one_pass.ensemble_weights));
    }
  }
}

}  // namespace
}  // namespace uper::cuda
