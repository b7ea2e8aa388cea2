// The whole command line of uper with one more environment, CartPole, and one more priority: see
// README.md.

#include "uper/cli/main.h"

#include <cmath>
#include <memory>

#include "cart_pole.h"

namespace {

// CartPole changes these settings of every agent. docs/configuration.md describes the keys.
constexpr const char* kSettings = R"(
frames = 80_000
log_every_frames = 1_000
evaluate_every_frames = 10_000
evaluation_frames = 0
evaluation_episodes = 20
checkpoint_every_frames = 20_000

[network]
hidden_units = 128

[agent]
n_steps = 3
learn_period_frames = 1
target_period_frames = 500
target_period_updates = 0

[optimizer]
rule = "adam"
learning_rate = 2.5e-4
epsilon = 1e-8
epsilon_placement = "outside"

[replay]
capacity_transitions = 50_000
minimum_transitions = 1_000
batch_size = 64

[exploration]
epsilon_from = 1
epsilon_to = 0.02
start_frames = 1_000
end_frames = 8_000
)";

uper::EnvironmentEntry CartPoleEntry() {
  return {.name = "cart_pole",
          .describe = [](const uper::EnvironmentOptions&) { return CartPole::Describe(); },
          .make =
              [](const uper::EnvironmentOptions&, const uper::EnvironmentStreams& streams) {
                return std::make_unique<CartPole>(streams.Main());
              },
          .defaults = {.time_limit_frames = 500},
          .settings = kSettings,
          .torso = "mlp"};
}

// Prefers large errors less than the rule "td" does.
uper::Priority RootTdError(const uper::PriorityInputs& inputs, const uper::PriorityLimits&) {
  return {.value = std::sqrt(inputs.td_error)};
}

constexpr uper::PriorityRuleInfo kRootTd{.name = "root_td",
                                         .formula = "sqrt(mean over members of |target - Q_k|)",
                                         .needs = {.td_error = true},
                                         .compute = RootTdError};

}  // namespace

int main(int argc, char** argv) {
  return uper::Main(argc, argv, {.environments = {CartPoleEntry()}, .priorities = {kRootTd}});
}
