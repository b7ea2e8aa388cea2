#include "uper/train/config/config_fields.h"

namespace uper {
namespace {

constexpr double kMaxCount = 9007199254740992;  // 2^53: doubles are exact up to here
constexpr NumberRange kProbability{0, 1};

NumberRange AtLeast(double low, double high = kMaxCount) { return {.low = low, .high = high}; }
NumberRange Positive(double high) { return {.low = 0, .high = high, .open_low = true}; }

// The range of an environment's key. Does not compile for a name without one.
consteval NumberRange OptionRangeOf(std::string_view name) {
  for (const OptionRange& range : kOptionRanges) {
    if (range.name != name) continue;
    return {.low = range.minus_one.empty() ? range.low : -1, .high = range.high};
  }
  throw "envs/options.h states no such range";
}

void ListRun(RunConfig& c, ConfigFieldList& list) {
  list.Table("");
  list.Add("frames", c.frames, AtLeast(1),
           "Length of training in frames (raw emulator frames on Atari, steps elsewhere).")
      .on_resume = OnResume::kMayBeRaised;
  list.Add("seed", c.seed, AtLeast(0), "Seed of every random stream of the run.");
  ConfigField& threads = list.Add("threads", c.threads, AtLeast(0, 1024),
                                  "Threads to use; 0: one per core. Results do not depend on it.");
  threads.on_resume = OnResume::kFree;
  list.Add("environments", c.environments, AtLeast(1, 65536),
           "Games played in step, one action of each per round; at most replay.batch_size. "
           "agent.learn_period_frames counts the frames of all games together.");
  ConfigField& overlap =
      list.Add("overlap_updates", c.overlap_updates,
               "Learn while the environments play the next step; auto: only if replay memory "
               "and network are on a GPU. Results do not depend on it.");
  overlap.automatic = "\"auto\"";
  overlap.on_resume = OnResume::kFree;
  ConfigField& device =
      list.Add("device", c.device,
               "Device of the network; auto: a GPU if there is one. Results of different "
               "devices differ by rounding.");
  device.automatic = "\"auto\"";
  device.on_resume = OnResume::kFree;
  list.Add("precision", c.precision,
           "Precision of the factors in the torso's products: fp32 (24 bits); on a GPU also "
           "tf32 (rounded to 11 bits) and tf32x3 (about 22 bits, three products instead of "
           "one).");
  list.Add("checkpoint_every_frames", c.checkpoint_every_frames, AtLeast(1),
           "Frames between two checkpoints. If it is at least `frames`, the only checkpoint "
           "is written at the end. Results do not depend on it.")
      .on_resume = OnResume::kFree;
  list.Add("log_every_frames", c.log_every_frames, AtLeast(1),
           "Frames between two rows of metrics.csv.");
  list.Add("evaluate_every_frames", c.evaluate_every_frames, AtLeast(0),
           "Frames between two evaluations; 0: none. Training does not depend on it.");
  list.Add("evaluation_frames", c.evaluation_frames, AtLeast(0),
           "An evaluation ends after this many frames; 0: no limit.");
  list.Add("evaluation_episodes", c.evaluation_episodes, AtLeast(0),
           "An evaluation ends after this many episodes; 0: no limit. With both limits the "
           "first one that is reached counts.");
  list.Add("evaluation_epsilon", c.evaluation_epsilon, kProbability,
           "Probability of a random action in evaluation.");
}

void ListEnvironment(EnvironmentConfig& c, ConfigFieldList& list) {
  EnvironmentOptions& o = c.options;
  list.Table("environment");
  list.Add("name", c.name, "The game: see `uper list envs`.");
  list.Add("sticky", o.sticky, OptionRangeOf("sticky"),
           "Probability that a step (Atari: a frame) repeats the last executed action; -1: the "
           "environment's own (MinAtar 0.1, Atari by its protocol).");
  list.Add("difficulty_ramping", o.difficulty_ramping,
           "MinAtar: the game becomes harder as it goes on.");
  list.Add("minimal_actions", o.minimal_actions,
           "MinAtar: offer only the actions that do something. Published results use all six.");
  list.Add("time_limit_frames", o.time_limit_frames, OptionRangeOf("time_limit_frames"),
           "Truncate an episode after this many frames (the agent bootstraps); 0: never; "
           "-1: the environment's own (Atari 108,000, others never).");
  list.Add("protocol", o.protocol,
           "Atari: the published set of rules. dqn-zoo: no sticky actions, idle frames at the "
           "start, a lost life has discount 0; dopamine: sticky 0.25, lives do not count.");
  list.Add("rom_dir", o.rom_dir,
           "Atari: folder with GAME.bin files; empty: the folder of `make setup`.")
      .on_resume = OnResume::kFree;
  list.Add("full_action_set", o.full_action_set,
           "Atari: all 18 actions instead of those that the game uses.");
  list.Add("mode", o.mode, OptionRangeOf("mode"), "Atari: mode of the game; -1: its default.");
  list.Add("difficulty", o.difficulty, OptionRangeOf("difficulty"),
           "Atari: difficulty of the game; -1: its default.");
  list.Add("episodic_life", o.episodic_life, "Atari: a lost life ends the episode.");
  list.Add("frame_size", o.frame_size, OptionRangeOf("frame_size"),
           "Atari: width and height of an observation.");
  list.Add("noop_max_frames", o.noop_max_frames, OptionRangeOf("noop_max_frames"),
           "Atari: an episode starts with 1 to this many idle frames; 0: none; -1: the "
           "protocol's (dqn-zoo 30, dopamine 0).");
  list.Add("cached_reset", o.cached_reset,
           "Atari: every game starts from the state after the console's first reset. false: "
           "the console is reset for each game (68 frames), and earlier games can influence "
           "later ones.");
  list.Add("reward_noise_sd", o.reward_noise_sd, OptionRangeOf("reward_noise_sd"),
           "Injected noise: standard deviation of a Gaussian added to rewards; 0: none.");
  list.Add("reward_noise_share", o.reward_noise_share, OptionRangeOf("reward_noise_share"),
           "Share of the states (chosen by a fixed hash) whose rewards get that noise.");
  list.Add("noisy_channels", o.noisy_channels, OptionRangeOf("noisy_channels"),
           "\"Noisy TV\": this many additional observation channels with random cells.");
  list.Add("random_action_probability", o.random_action_probability,
           OptionRangeOf("random_action_probability"),
           "Probability that the environment replaces the action by a uniformly drawn one.");
}

void ListNetwork(NetworkConfig& c, ConfigFieldList& list) {
  list.Table("network");
  list.Add("torso", c.torso,
           "nature: 3 convolutions (84x84x4); minatar: 1 convolution (10x10); mlp: dense "
           "layers; "
           "auto: by the environment.")
      .automatic = "\"auto\"";
  list.Add("mlp_layers", c.mlp_layers, AtLeast(0, 8), "Dense layers of the torso mlp.");
  list.Add("mlp_units", c.mlp_units, AtLeast(1, 65536),
           "Units of each dense layer of the torso mlp.");
  list.Add("hidden_units", c.hidden_units, AtLeast(1, 65536),
           "Units of the layer between torso and head.");
  list.Add("members", c.members, AtLeast(1, 64), "Ensemble members K; 1: no ensemble.");
  list.Add("quantiles", c.quantiles, AtLeast(1, 4096), "Quantiles of each member (head quantile).");
  list.Add("atoms", c.atoms, AtLeast(2, 4096), "Of each member (head categorical).");
  list.Add("atoms_low", c.atoms_low, NumberRange{-1e9, 1e9}, "Return of the lowest atom.");
  list.Add("atoms_high", c.atoms_high, NumberRange{-1e9, 1e9}, "Return of the highest atom.");
  list.Add("separate_hidden", c.separate_hidden,
           "A hidden layer for each member instead of one for all.");
  list.Add("shared_output_bias", c.shared_output_bias,
           "One bias for all outputs (DQN Zoo's double DQN and PER; head scalar).");
  list.Add("initialization", c.initialization,
           "uniform: within 1/sqrt(fan-in), biases too; orthogonal: weights orthogonal, "
           "biases 0.");
  list.Add("orthogonal_gain", c.orthogonal_gain, Positive(1e3), "Factor on orthogonal matrices.");
}

void ListAgent(AgentConfig& c, ConfigFieldList& list) {
  list.Table("agent");
  list.Add("name", c.name,
           "The agent whose settings apply unless a key says otherwise: see `uper list agents`.");
  list.Add("head", c.head,
           "What a member predicts of the return: scalar (its mean; squared loss), quantile "
           "(quantiles; quantile-Huber loss) or categorical (probabilities of atoms; "
           "cross-entropy).");
  list.Add("double_q", c.double_q, "The online network chooses the target's action.");
  list.Add("target_rule", c.target_rule,
           "per_member: each member learns from its own target and greedy action; ensemble: all "
           "from the mean's greedy action.");
  list.Add("huber_kappa", c.huber_kappa, NumberRange{0, 1e6},
           "Head quantile: where the Huber part turns linear; 0: the plain quantile loss.");
  list.Add("td_gradient_bound", c.td_gradient_bound, NumberRange{0, 1e6},
           "Head scalar: bound on |importance weight * TD error| in the gradient of the squared "
           "loss (1: DQN Zoo's, and without weights the Huber loss); 0: none.");
  list.Add("priority", c.priority,
           "Rule of the replay priorities: see `uper list priorities`; info_gain_delta is UPER.");
  list.Add("td_priority", c.td_priority,
           "TD error of the priority td, a mean over members: mean_abs, |TD error of the "
           "means|; loss, the loss (cross-entropy is limited to 100).");
  list.Add("target_form", c.target_form,
           "Target in E_delta. atari: each member's own target distribution; scalar: the "
           "mean target, so that E_delta = delta^2 + E.");
  list.Add("aleatoric_floor", c.aleatoric_floor, Positive(1e6),
           "Added to A in every denominator that contains A.");
  list.Add("priority_cap", c.priority_cap, Positive(1e30), "Largest priority that replay gets.");
  list.Add("mask_probability", c.mask_probability, Positive(1),
           "Probability that a member learns from a transition; drawn once per transition.");
  list.Add("member_weighting", c.member_weighting,
           "Combination of the members' losses: mean over all unmasked ones, or sum over "
           "members.");
  list.Add("categorical_uncertainty", c.categorical_uncertainty,
           "E and A of head categorical: from its quantiles, as in the authors' code, or by "
           "the law of total variance.");
  list.Add("discount", c.discount, kProbability, "Gamma, per agent step.");
  list.Add("n_steps", c.n_steps, AtLeast(1, 1024), "Steps of reward before bootstrapping.");
  list.Add("reward_clip", c.reward_clip, NumberRange{0, 1e9},
           "Rewards are clipped to [-x, x] for learning; 0: not at all.");
  list.Add("learn_period_frames", c.learn_period_frames, AtLeast(1), "Frames between two updates.");
  list.Add("target_period_frames", c.target_period_frames, AtLeast(0),
           "Frames between two copies to the target network; 0: target_period_updates applies.");
  list.Add("target_period_updates", c.target_period_updates, AtLeast(0),
           "Updates between two copies to the target network; 0: target_period_frames applies.");
}

void ListOptimizer(OptimizerConfig& c, ConfigFieldList& list) {
  list.Table("optimizer");
  list.Add("rule", c.rule, "adam (bias-corrected) or rmsprop (centered).");
  list.Add("learning_rate", c.learning_rate, Positive(1e3), "Step size.");
  list.Add("epsilon", c.epsilon, NumberRange{0, 1e3}, "Keeps the divisor away from 0.");
  list.Add("epsilon_placement", c.epsilon_placement,
           "inside: sqrt(v + epsilon), DQN Zoo's RMSProp; outside: sqrt(v) + epsilon, Adam and "
           "PyTorch's RMSProp.");
  list.Add("first_moment_decay", c.first_moment_decay, NumberRange{0, 0.999999}, "Adam's beta 1.");
  list.Add("second_moment_decay", c.second_moment_decay, NumberRange{0, 0.999999999},
           "Adam's beta 2.");
  list.Add("rmsprop_decay", c.rmsprop_decay, NumberRange{0, 0.999999},
           "Decay of both moments of RMSProp.");
  list.Add("max_global_norm", c.max_global_norm, NumberRange{0, 1e9},
           "Gradients are scaled down to this L2 norm over all parameters; 0: not at all.");
}

void ListReplay(ReplayConfig& c, ConfigFieldList& list) {
  list.Table("replay");
  list.Add("capacity_transitions", c.capacity_transitions, AtLeast(1, 4294967295),
           "Size of the replay memory. New transitions replace the oldest ones.");
  list.Add("capacity_frames", c.capacity_frames, AtLeast(0, 4294967294),
           "Frames stored for stacked observations; 0: as many as the transitions need.")
      .automatic = "0";
  list.Add("minimum_transitions", c.minimum_transitions, AtLeast(1, 4294967295),
           "Learning starts when this many transitions are stored.");
  list.Add("batch_size", c.batch_size, AtLeast(1, 65536), "Transitions of one update.");
  list.Add("selector", c.selector,
           "proportional: by priority^exponent; rank: by rank^-exponent; uniform.");
  list.Add("priority_exponent", c.priority_exponent, NumberRange{0, 4},
           "Alpha: the exponent of priorities (proportional) or ranks (rank).");
  list.Add("importance_exponent_from", c.importance_exponent_from, kProbability,
           "Beta at the start. 0: no importance weights.");
  list.Add("importance_exponent_to", c.importance_exponent_to, kProbability, "Beta at the end.");
  list.Add("importance_exponent_start_transitions", c.importance_exponent_start_transitions,
           AtLeast(0), "Beta is constant until this many transitions were added, ...");
  list.Add("importance_exponent_end_transitions", c.importance_exponent_end_transitions, AtLeast(0),
           "... then linear up to this many; 0: the number of steps of the run when it starts.")
      .automatic = "0";
  list.Add("uniform_mix", c.uniform_mix, kProbability, "Share of draws that are uniform.");
  list.Add("weight_normalization", c.weight_normalization,
           "Importance weights are divided by the largest weight of the batch or of the "
           "buffer, or not.");
  list.Add("stratified", c.stratified,
           "One draw from each of batch_size equal parts of the total mass.");
  list.Add("largest_priority_decay", c.largest_priority_decay, Positive(1),
           "New transitions get the largest priority. This factor is applied to it at each "
           "update; 1: it never falls.");
}

void ListExploration(ExplorationConfig& c, ConfigFieldList& list) {
  list.Table("exploration");
  list.Add("epsilon_from", c.epsilon_from, kProbability,
           "Probability of a random action until start_frames.");
  list.Add("epsilon_to", c.epsilon_to, kProbability,
           "Probability of a random action from end_frames on.");
  list.Add("start_frames", c.start_frames, AtLeast(0), "Frame at which the linear change starts.");
  list.Add("end_frames", c.end_frames, AtLeast(0), "Frame at which it ends.");
}

}  // namespace

std::vector<ConfigField> ConfigFields(RunConfig& config) {
  ConfigFieldList list;
  ListRun(config, list);
  ListEnvironment(config.environment, list);
  ListNetwork(config.network, list);
  ListAgent(config.agent, list);
  ListOptimizer(config.optimizer, list);
  ListReplay(config.replay, list);
  ListExploration(config.exploration, list);
  return list.Take();
}

std::vector<std::string> ConfigKeyNames() {
  RunConfig config;
  std::vector<std::string> names;
  for (const ConfigField& field : ConfigFields(config)) names.push_back(field.key);
  return names;
}

}  // namespace uper
