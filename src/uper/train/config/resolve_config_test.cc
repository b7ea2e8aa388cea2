#include "uper/train/config/resolve_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "uper/base/files/files_for_tests.h"
#include "uper/train/config/agent_files.h"
#include "uper/train/config/config_check.h"
#include "uper/train/config/config_fields.h"
#include "uper/train/config/config_io.h"

namespace uper {
namespace {

RunConfig Resolve(const std::string& env, const std::string& agent,
                  std::vector<std::string> settings = {}) {
  return ResolveConfig(
      {.flags = {{"--env", "environment.name", env}, {"--agent", "agent.name", agent}},
       .settings = std::move(settings)});
}

TEST(AgentFilesTest, EveryAgentHasAFileForEveryProtocol) {
  EXPECT_EQ(ConfigFiles().size(), 2 * AgentNames().size());
  for (const char* protocol : {"atari", "minatar"}) {
    for (const std::string& agent : AgentNames()) {
      EXPECT_EQ(FindAgentFile(protocol, agent).path, protocol + ("/" + agent + ".toml"));
    }
  }
  const Thrown thrown = Catch([] { FindAgentFile("atari", "qr-ens-upper"); });
  EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
  EXPECT_TRUE(thrown.Says("did you mean 'qr-ens-uper'?")) << thrown.message;
}

// Two files can be compared line by line only if their keys come in the same order.
TEST(AgentFilesTest, KeysComeInTheOrderOfTheDocumentation) {
  const std::vector<std::string> keys = ConfigKeyNames();
  for (const EmbeddedFile& file : ConfigFiles()) {
    std::ptrdiff_t last = -1;
    for (const TomlEntry& entry : ReadToml(file.text, "file")) {
      const auto place = std::find(keys.begin(), keys.end(), entry.key) - keys.begin();
      EXPECT_GT(place, last) << file.path << ": " << entry.key;
      last = place;
    }
  }
}

TEST(AgentFilesTest, AllResolveAndPassTheChecks) {
  for (const EmbeddedFile& file : ConfigFiles()) {
    const std::filesystem::path path(file.path);
    const std::string env = path.parent_path() == "atari" ? "atari/pong" : "minatar/asterix";
    const std::string agent = path.stem().string();
    const RunConfig config = Resolve(env, agent);
    EXPECT_EQ(config.agent.name, agent);
    EXPECT_EQ(config.environment.name, env);
  }
}

TEST(AgentFilesTest, MembersOfTheEnsemblesOfThePaperLearnFromHalf) {
  const auto check = [](const std::string& agent, bool ensemble) {
    for (const char* env : {"atari/pong", "minatar/asterix"}) {
      const RunConfig config = Resolve(env, agent);
      EXPECT_EQ(config.network.members > 1, ensemble) << agent << " " << env;
      EXPECT_EQ(config.agent.mask_probability, ensemble ? 0.5 : 1) << agent << " " << env;
    }
  };
  for (const char* agent :
       {"qr-ens-uni", "qr-ens-per", "qr-ens-epi", "qr-ens-uper", "c51-ens-per", "c51-ens-uper"}) {
    check(agent, true);
  }
  for (const char* agent : {"dqn", "double-dqn", "per", "qr-dqn", "qr-per", "c51"}) {
    check(agent, false);
  }
}

TEST(AgentFilesTest, AtariSettingsAreThePublishedOnes) {
  struct Row {
    const char* agent;
    double rate, epsilon, exploration, evaluation;
    std::int64_t target_frames;
    bool double_q, shared_bias;
    const char* priority;
  };
  const Row rows[] = {
      {"dqn", 2.5e-4, 0.01 / 1024, 0.1, 0.05, 40000, false, false, "uniform"},
      {"double-dqn", 2.5e-4, 0.01 / 1024, 0.01, 0.01, 120000, true, true, "uniform"},
      {"per", 2.5e-4 / 4, 0.01 / 1024 / 16, 0.01, 0.01, 120000, true, true, "td"},
      {"qr-dqn", 5e-5, 0.01 / 32, 0.01, 0.001, 40000, false, false, "uniform"},
      {"qr-per", 5e-5, 0.01 / 32, 0.01, 0.001, 40000, false, false, "td"},
      {"qr-ens-uni", 5e-5, 0.01 / 1024, 0.01, 0.001, 40000, false, false, "uniform"},
      {"qr-ens-per", 5e-5, 0.01 / 1024, 0.01, 0.001, 40000, false, false, "td"},
      {"qr-ens-epi", 5e-5, 0.01 / 1024, 0.01, 0.001, 40000, false, false, "epistemic_delta"},
      {"qr-ens-uper", 5e-5, 0.01 / 1024, 0.01, 0.001, 40000, false, false, "info_gain_delta"},
      {"c51", 2.5e-4, 0.01 / 32, 0.01, 0.001, 40000, false, false, "uniform"},
      {"c51-ens-per", 5e-5, 0.01 / 32, 0.01, 0.001, 40000, false, false, "td"},
      {"c51-ens-uper", 5e-5, 0.01 / 32, 0.01, 0.001, 40000, false, false, "info_gain_delta"},
  };
  for (const Row& row : rows) {
    const RunConfig c = Resolve("atari/pong", row.agent);
    EXPECT_DOUBLE_EQ(c.optimizer.learning_rate, row.rate) << row.agent;
    EXPECT_DOUBLE_EQ(c.optimizer.epsilon, row.epsilon) << row.agent;
    EXPECT_EQ(c.exploration.epsilon_to, row.exploration) << row.agent;
    EXPECT_EQ(c.evaluation_epsilon, row.evaluation) << row.agent;
    EXPECT_EQ(c.agent.target_period_frames, row.target_frames) << row.agent;
    EXPECT_EQ(c.agent.double_q, row.double_q) << row.agent;
    EXPECT_EQ(c.network.shared_output_bias, row.shared_bias) << row.agent;
    EXPECT_EQ(ChoiceName(c.agent.priority), row.priority) << row.agent;
    // Common to all.
    EXPECT_EQ(c.frames, 200'000'000);
    EXPECT_EQ(c.agent.learn_period_frames, 16);
    EXPECT_EQ(c.replay.capacity_transitions, 1'000'000);
    EXPECT_EQ(c.replay.minimum_transitions, 50'000);
    EXPECT_EQ(c.replay.batch_size, 32);
    EXPECT_EQ(c.exploration.start_frames, 200'000);
    EXPECT_EQ(c.exploration.end_frames, 4'200'000);
    EXPECT_EQ(c.agent.reward_clip, 1);
    const bool scalar = c.agent.head == HeadKind::kScalar;
    EXPECT_EQ(c.optimizer.max_global_norm, scalar ? 0 : 10);
    EXPECT_EQ(c.agent.td_gradient_bound, scalar ? 1 : 0);
    EXPECT_EQ(c.optimizer.rule, scalar ? OptimizerRule::kRmsProp : OptimizerRule::kAdam);
    EXPECT_EQ(c.optimizer.epsilon_placement,
              scalar ? EpsilonPlacement::kInsideRoot : EpsilonPlacement::kOutsideRoot);
    if (c.agent.priority != PriorityRule::kUniform) {
      EXPECT_EQ(c.replay.priority_exponent, 0.6);
      EXPECT_EQ(c.replay.importance_exponent_from, 0.4);
      EXPECT_EQ(c.replay.importance_exponent_end_transitions, 50'000'000);
      EXPECT_EQ(c.replay.uniform_mix, 1e-3);
    }
  }
}

TEST(AgentFilesTest, MinAtarSettingsAreThePublishedOnes) {
  const RunConfig dqn = Resolve("minatar/breakout", "dqn");
  EXPECT_EQ(dqn.optimizer.rule, OptimizerRule::kRmsProp);
  EXPECT_EQ(dqn.optimizer.epsilon_placement, EpsilonPlacement::kOutsideRoot);
  EXPECT_EQ(dqn.optimizer.learning_rate, 2.5e-4);
  EXPECT_EQ(dqn.optimizer.epsilon, 0.01);
  EXPECT_EQ(dqn.optimizer.rmsprop_decay, 0.95);
  EXPECT_EQ(dqn.agent.learn_period_frames, 1);
  EXPECT_EQ(dqn.agent.target_period_updates, 1000);
  EXPECT_EQ(dqn.agent.target_period_frames, 0);
  EXPECT_EQ(dqn.replay.capacity_transitions, 100'000);
  EXPECT_EQ(dqn.replay.minimum_transitions, 5'000);
  EXPECT_EQ(dqn.exploration.start_frames, 5'000);
  EXPECT_EQ(dqn.exploration.end_frames, 105'000);
  EXPECT_EQ(dqn.exploration.epsilon_to, 0.1);
  EXPECT_EQ(dqn.network.hidden_units, 128);
  EXPECT_EQ(dqn.agent.reward_clip, 0);
  const RunConfig qr = Resolve("minatar/breakout", "qr-dqn");
  EXPECT_EQ(qr.agent.huber_kappa, 0);
  EXPECT_EQ(qr.network.quantiles, 50);
  EXPECT_EQ(qr.network.initialization, Initialization::kOrthogonal);
  EXPECT_EQ(qr.network.orthogonal_gain, 3);
  EXPECT_EQ(qr.optimizer.learning_rate, 1e-4);
  EXPECT_EQ(qr.optimizer.epsilon, 1e-8);
  EXPECT_EQ(qr.exploration.epsilon_to, 0.03);
  const RunConfig uper = Resolve("minatar/breakout", "qr-ens-uper");
  EXPECT_EQ(uper.network.members, 10);
  EXPECT_EQ(uper.network.quantiles, 51);
  // The agent's settings leave the environment's options as they are.
  EXPECT_EQ(uper.environment.options, EnvironmentOptions{});
}

class ResolveConfigTest : public FolderTest {};

TEST_F(ResolveConfigTest, LaterSourcesWin) {
  const auto file = folder_ / "mine.toml";
  PutFile(file,
          "seed = 10\nthreads = 10\n[agent]\nname = \"dqn\"\ndiscount = 0.5\nn_steps = 4\n"
          "[environment]\nname = \"atari/pong\"\n");
  const RunConfig config =
      ResolveConfig({.file = file,
                     .flags = {{"--seed", "seed", "20"}, {"--agent", "agent.name", "per"}},
                     .settings = {"threads=30", "agent.n_steps=5", "agent.n_steps=6"}});
  EXPECT_EQ(config.agent.name, "per");                  // flag over file
  EXPECT_EQ(config.environment.name, "atari/pong");     // file over default
  EXPECT_EQ(config.optimizer.epsilon, 6.103515625e-7);  // the agent's file over the default
  EXPECT_EQ(config.agent.discount, 0.5);                // file over the agent's
  EXPECT_EQ(config.seed, 20);                           // flag over file
  EXPECT_EQ(config.threads, 30);                        // --set over file
  EXPECT_EQ(config.agent.n_steps, 6);                   // the last --set
  EXPECT_EQ(ResolveConfig({.file = file,
                           .flags = {{"--seed", "seed", "20"}},
                           .settings = {"seed=40", "agent.name=c51"}})
                .seed,
            40);  // --set over flag
}

TEST_F(ResolveConfigTest, ADumpGivesTheSameRun) {
  for (const char* agent : {"dqn", "c51-ens-per", "qr-ens-uper"}) {
    RunConfig config = Resolve("minatar/freeway", agent, {"replay.batch_size=17"});
    FillAutomaticKeys(config, 1);
    PutFile(folder_ / "config.toml", DumpToml(config));
    EXPECT_TRUE(DifferingKeys(config, ResolveConfig({.file = folder_ / "config.toml"})).empty());
    EXPECT_TRUE(DifferingKeys(config, ReadDumpedConfig(folder_ / "config.toml")).empty());
  }
}

TEST_F(ResolveConfigTest, ErrorsNameTheirSource) {
  const auto message = [](const ConfigInputs& inputs) {
    const Thrown thrown = Catch([&] { ResolveConfig(inputs); });
    EXPECT_EQ(thrown.kind, ErrorKind::kUsage) << thrown.message;
    return thrown.message;
  };
  EXPECT_NE(message({.file = folder_ / "none.toml"}).find("none.toml"), std::string::npos);
  EXPECT_NE(message({.file = folder_}).find(folder_.string()), std::string::npos);
  PutFile(folder_ / "bad.toml", "\nfraems = 1\n");
  EXPECT_NE(message({.file = folder_ / "bad.toml"})
                .find("bad.toml:2: unknown key 'fraems' (did you mean 'frames'?)"),
            std::string::npos);
  EXPECT_NE(message({.settings = {"sed=1"}}).find("--set sed=1: unknown key 'sed'"),
            std::string::npos);
  EXPECT_NE(message({.flags = {{"--frames", "frames", "many"}}}).find("--frames: frames must be"),
            std::string::npos);
  EXPECT_NE(message({.settings = {"agent.name=qrdqn"}}).find("unknown agent 'qrdqn'"),
            std::string::npos);
  PutFile(folder_ / "large.toml", std::string(2 << 20, '#'));
  EXPECT_NE(message({.file = folder_ / "large.toml"}).find("too large"), std::string::npos);
}

TEST_F(ResolveConfigTest, AStoredConfigurationIsMissingOrCorruptNotUsage) {
  EXPECT_EQ(Catch([&] { ReadDumpedConfig(folder_ / "config.toml"); }).kind,
            ErrorKind::kMissingData);
  PutFile(folder_ / "config.toml", "frames = \"x\"\n");
  EXPECT_EQ(Catch([&] { ReadDumpedConfig(folder_ / "config.toml"); }).kind, ErrorKind::kCorrupt);
}

TEST(FillAutomaticKeysTest, FillsWhatWasLeftOpen) {
  RunConfig config = Resolve("minatar/freeway", "qr-ens-uper", {"frames=200_000"});
  FillAutomaticKeys(config, 1);
  EXPECT_EQ(config.network.torso, TorsoPreset::kMinAtar);
  EXPECT_EQ(config.replay.importance_exponent_end_transitions, 200'000);
  config = Resolve("atari/pong", "qr-ens-uper", {"replay.importance_exponent_end_transitions=0"});
  FillAutomaticKeys(config, 4);
  EXPECT_EQ(config.network.torso, TorsoPreset::kNature);
  EXPECT_EQ(config.replay.importance_exponent_end_transitions, 50'000'000);
  config = Resolve("grid/noisy", "dqn", {"network.mlp_layers=2"});
  FillAutomaticKeys(config, 1);
  EXPECT_EQ(config.network.torso, TorsoPreset::kMlp);
  config = Resolve("minatar/freeway", "per", {"frames=100"});
  FillAutomaticKeys(config, 1);
  EXPECT_EQ(config.replay.importance_exponent_end_transitions, 5'000);  // not before its start
  const RunConfig filled = config;
  FillAutomaticKeys(config, 4);
  EXPECT_TRUE(DifferingKeys(config, filled).empty());
}

TEST(CheckConfigTest, ContradictionsAreRefusedWithAdvice) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"agent.priority=uniform"}, "set both to \"uniform\""},
      {{"replay.selector=uniform"}, "set both to \"uniform\""},
      {{"network.members=1", "agent.priority=info_gain", "agent.mask_probability=1"},
       "raise network.members"},
      {{"network.members=1"}, "agent.mask_probability below 1 needs an ensemble"},
      {{"agent.head=scalar"}, "needs a distribution of returns"},
      {{"agent.td_gradient_bound=1"}, "agent.td_gradient_bound is for"},
      {{"network.shared_output_bias=true"}, "network.shared_output_bias is for"},
      {{"network.atoms_low=10", "network.atoms_high=10"}, "network.atoms_low must be below"},
      {{"agent.head=scalar", "agent.priority=td", "agent.td_priority=loss"}, "use \"mean_abs\""},
      {{"optimizer.epsilon_placement=inside"}, "optimizer.epsilon_placement to \"outside\""},
      {{"replay.capacity_transitions=1000"}, "learning would never start"},
      {{"replay.importance_exponent_end_transitions=10"}, "must not be above"},
      {{"agent.target_period_updates=10"}, "exactly one of agent.target_period_frames"},
      {{"agent.target_period_frames=0"}, "exactly one of agent.target_period_frames"},
      {{"exploration.end_frames=0", "exploration.start_frames=1"}, "must not be above"},
      {{"evaluation_frames=0", "evaluation_episodes=0"}, "an evaluation needs an end"},
      {{"environment.sticky=-0.5"}, "environment.sticky must be in [0, 1]"},
      {{"device=cpu", "precision=tf32"}, "precision = \"tf32\" needs a GPU; set it to \"fp32\""},
      {{"device=cpu", "precision=tf32x3"}, "or device to \"cuda\""},
  };
  for (const auto& [settings, words] : cases) {
    const Thrown thrown = Catch([&] { Resolve("minatar/breakout", "qr-ens-uper", settings); });
    EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
    EXPECT_TRUE(thrown.Says(words)) << thrown.message;
  }
}

// Any priority of the list works on any ensemble agent.
TEST(CheckConfigTest, EveryPriorityIsAllowedOnEnsembles) {
  for (const Choice<PriorityRule>& choice : ChoicesOf<PriorityRule>()) {
    const std::string selector = choice.name == "uniform" ? "uniform" : "proportional";
    for (const char* agent : {"qr-ens-uper", "c51-ens-uper"}) {
      EXPECT_NO_THROW(
          Resolve("minatar/breakout", agent,
                  {"agent.priority=" + std::string(choice.name), "replay.selector=" + selector}));
    }
  }
}

}  // namespace
}  // namespace uper
