#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "uper/nn/cuda/learner/cuda_learner.h"
#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/initialization.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {

// Helpers of the CUDA learner's tests: agents of every kind, and the state of a learner.

using Data = LearnerTestData;

inline void CopyState(Learner& from, Learner& to) {
  const LearnerState a = from.State(), b = to.State();
  std::copy(a.online.begin(), a.online.end(), b.online.begin());
  std::copy(a.target.begin(), a.target.end(), b.target.begin());
  std::copy(a.first_moment.begin(), a.first_moment.end(), b.first_moment.begin());
  std::copy(a.second_moment.begin(), a.second_moment.end(), b.second_moment.begin());
  to.CommitState(a.updates);
}

inline std::vector<double> Statistics(const LearnerOutput& output) {
  std::vector<double> all = {output.loss, output.gradient_norm};
  all.insert(all.end(), output.td_error.begin(), output.td_error.end());
  for (const Uncertainty& u : output.uncertainty) {
    all.insert(all.end(), {u.mean, u.epistemic, u.aleatoric, u.target_distance_sq,
                           u.epistemic_delta, u.total, u.total_delta});
  }
  return all;
}

// Everything that a learner carries from update to update.
inline std::vector<float> Numbers(Learner& learner) {
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

inline LearnerSpec SpecOf(const NetworkSpec& network, HeadKind head, int batch) {
  LearnerSpec spec{
      .network = network, .loss = {.head = head}, .max_global_norm = 10, .batch = batch};
  spec.loss.support = {.low = -2, .high = 3, .atoms = static_cast<std::size_t>(network.outputs)};
  if (head == HeadKind::kScalar) spec.optimizer = RmsPropOptions{};
  return spec;
}

// Images with awkward sizes: all kinds of borders in the backward pass, three layers.
inline NetworkSpec OddNetwork(const HeadSize& head) {
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

inline std::vector<Agent> Agents() {
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
  separate.loss.target_rule = TargetRule::kEnsemble;
  separate.loss.target_form = TargetForm::kScalar;
  separate.loss.member_weighting = MemberWeighting::kSum;
  separate.optimizer = RmsPropOptions{.epsilon_placement = EpsilonPlacement::kOutsideRoot};
  LearnerSpec& plain = add("plain quantile loss, one sample",
                           SpecOf(MinatarNetwork(4, quantile), HeadKind::kQuantile, 1));
  plain.loss.huber_kappa = 0;
  plain.loss.td_priority = TdErrorKind::kLoss;
  for (const CategoricalUncertainty form :
       {CategoricalUncertainty::kQuantiles, CategoricalUncertainty::kTotalVariance,
        CategoricalUncertainty::kAuthors}) {
    LearnerSpec& c51 = add("c51 " + std::to_string(int(form)),
                           SpecOf(MinatarNetwork(4, atoms), HeadKind::kCategorical, 33));
    c51.loss.categorical_uncertainty = form;
    c51.loss.td_priority = TdErrorKind::kLoss;
    if (form == CategoricalUncertainty::kAuthors) {
      c51.loss.target_rule = TargetRule::kEnsemble;
      c51.loss.double_q = true;
    }
  }
  add("odd images",
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

// Agents that together use every kind of GEMM, and both sizes of images.
inline std::vector<Agent> AgentsIn(Precision precision) {
  std::vector<Agent> agents;
  for (Agent& agent : Agents()) {
    for (const char* name : {"dqn", "qr-ens-uper", "odd images", "pixels four at a time",
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

// Three updates with a copy of the target in between: the outputs, and the state at the end.
inline std::vector<double> Trained(const LearnerSpec& spec) {
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

}  // namespace uper::cuda
