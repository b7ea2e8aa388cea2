#include "uper/train/sweep/sweep_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "uper/base/error_for_tests.h"

namespace uper {
namespace {

std::string ErrorOf(const std::string& text) {
  return Refusal([&] { ParseSweepPlan(text, "s.toml"); });
}

void ExpectInError(const std::string& text, const std::vector<std::string>& words) {
  const std::string error = ErrorOf(text);
  for (const std::string& word : words) {
    EXPECT_NE(error.find(word), std::string::npos) << word << " is not in: " << error;
  }
}

TEST(SweepPlan, AllCombinationsInTheOrderOfTheFile) {
  const SweepPlan plan = ParseSweepPlan(R"(
agents = ["dqn", "qr-dqn"]
environments = ["minatar/breakout"]
seeds = [7, 3]
[fixed]
frames = 1_000
[grid]
optimizer.learning_rate = [1e-4, 0.001, 1]
)",
                                        "s.toml");
  ASSERT_EQ(plan.runs.size(), 2u * 2 * 3);
  EXPECT_EQ(plan.runs[0].name, "minatar-breakout_dqn_learning_rate=1e-04_seed=7");
  EXPECT_EQ(plan.runs[1].name, "minatar-breakout_dqn_learning_rate=0.001_seed=7");
  EXPECT_EQ(plan.runs[3].name, "minatar-breakout_dqn_learning_rate=1e-04_seed=3");
  EXPECT_EQ(plan.runs[11].name, "minatar-breakout_qr-dqn_learning_rate=1_seed=3");
  const RunConfig& last = plan.runs[11].config;
  EXPECT_EQ(last.agent.name, "qr-dqn");
  EXPECT_EQ(last.agent.head, HeadKind::kQuantile);  // its file was read
  EXPECT_EQ(last.seed, 3);
  EXPECT_EQ(last.frames, 1000);
  EXPECT_EQ(last.optimizer.learning_rate, 1);
  EXPECT_EQ(plan.columns, (std::vector<std::string>{"environment.name", "agent.name",
                                                    "optimizer.learning_rate", "seed"}));
}

TEST(SweepPlan, PointsOfAListGoWithEveryCombination) {
  const SweepPlan plan = ParseSweepPlan(R"(
seeds = [1, 2]
[[list]]
agent.name = "dqn"
optimizer.learning_rate = 1e-3
[[list]]
agent.name = "qr-dqn"
)",
                                        "s.toml");
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_EQ(plan.runs[0].config.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(plan.runs[2].name, "minatar-breakout_qr-dqn_seed=1");
  EXPECT_NE(plan.runs[2].config.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(plan.runs[3].config.seed, 2);
}

// The number of environments has the name of the list of games, which stands outside all tables.
TEST(SweepPlan, NumbersOfEnvironmentsMayVary) {
  for (const char* varies : {"[grid]\nenvironments = [1, 16]\n",
                             "[[list]]\nenvironments = 1\n[[list]]\nenvironments = 16\n"}) {
    const SweepPlan plan =
        ParseSweepPlan("environments = [\"minatar/asterix\"]\n" + std::string(varies), "s.toml");
    ASSERT_EQ(plan.runs.size(), 2u) << varies;
    EXPECT_EQ(plan.runs[0].config.environments, 1);
    EXPECT_EQ(plan.runs[1].config.environments, 16);
    EXPECT_EQ(plan.runs[1].config.environment.name, "minatar/asterix");
    EXPECT_EQ(plan.runs[1].name, "minatar-asterix_qr-ens-uper_environments=16_seed=1");
  }
  ExpectInError("[[list]]\nenvironments = [\"minatar/asterix\"]\n",
                {"s.toml:2", "environment.name"});
}

TEST(SweepPlan, NamesAreUniqueFileNames) {
  const SweepPlan plan = ParseSweepPlan(R"(
[grid]
network.hidden_units = [8, 16]
network.mlp_units = [8, 16]
exploration.epsilon_to = [0, 1]
evaluation_epsilon = [0.5, 0.25]
)",
                                        "s.toml");
  std::set<std::string> names;
  for (const SweepRun& run : plan.runs) {
    EXPECT_EQ(run.name.find('/'), std::string::npos);
    EXPECT_LE(run.name.size(), 255u);
    names.insert(run.name);
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(plan.runs[0].name,
            "minatar-breakout_qr-ens-uper_hidden_units=8_mlp_units=8_epsilon_to=0_"
            "evaluation_epsilon=0.5_seed=1");
}

TEST(SweepPlan, NamesThatWouldBeTooLongOrEqualAreNumbered) {
  std::string text = "[grid]\n";
  for (const char* key :
       {"checkpoint_every_frames", "log_every_frames", "evaluate_every_frames", "evaluation_frames",
        "evaluation_episodes", "environment.time_limit_frames", "replay.capacity_transitions",
        "replay.importance_exponent_end_transitions"}) {
    text += std::string(key) + " = [1_000_000, 2_000_000]\n";
  }
  const SweepPlan plan = ParseSweepPlan(text, "s.toml");
  std::set<std::string> names;
  for (const SweepRun& run : plan.runs) {
    EXPECT_LE(run.name.size(), 255u);
    names.insert(run.name);
  }
  EXPECT_EQ(names.size(), 256u);
}

TEST(SweepPlan, OneThreadUnlessTheFileSaysOtherwise) {
  EXPECT_EQ(ParseSweepPlan("seeds = [1]", "s").MostThreads(), 1);
  EXPECT_EQ(ParseSweepPlan("[grid]\nthreads = [2, 5, 3]", "s").MostThreads(), 5);
  EXPECT_EQ(ParseSweepPlan("[grid]\nthreads = [2, 0]", "s").MostThreads(), 0);
}

TEST(SweepPlan, AFileWithoutListsIsOneRun) {
  const SweepPlan plan = ParseSweepPlan("[fixed]\nframes = 1000", "s.toml");
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].name, "minatar-breakout_qr-ens-uper_seed=1");
}

TEST(SweepPlan, AFileThatSaysNothingIsRefused) {
  ExpectInError("", {"s.toml says nothing", "agents"});
  ExpectInError("# agents = [\"dqn\"]\n", {"s.toml says nothing"});
}

TEST(SweepPlan, SlurmKeys) {
  const SlurmOptions slurm = ParseSweepPlan(R"([slurm]
partition = "long"
memory = "4G"
cpus = 3
warning_seconds = 30
extra = "--exclusive"
)",
                                            "s")
                                 .slurm;
  EXPECT_EQ(slurm.partition, "long");
  EXPECT_EQ(slurm.memory, "4G");
  EXPECT_EQ(slurm.cpus, 3);
  EXPECT_EQ(slurm.warning_seconds, 30);
  EXPECT_EQ(slurm.extra, "--exclusive");
}

TEST(SweepPlan, MistakesAreNamedWithTheirLine) {
  ExpectInError("\n[grid]\noptimizer.learning_rat = [1]",
                {"s.toml:3", "optimizer.learning_rat'", "did you mean 'optimizer.learning_rate'"});
  ExpectInError("[fixed]\nframse = 3", {"s.toml:2", "framse", "did you mean 'frames'"});
  ExpectInError("agnets = [\"dqn\"]", {"s.toml:1", "agnets", "did you mean 'agents'"});
  ExpectInError("[grdi]\nseed = [1]", {"s.toml:2", "grdi", "did you mean 'grid'"});
  ExpectInError("[slurm]\npartion = \"x\"", {"s.toml:2", "did you mean 'slurm.partition'"});
  ExpectInError("[slurm]\ncpus = \"x\"", {"s.toml:2", "slurm.cpus", "an integer"});
  ExpectInError("frames = 3", {"s.toml:1", "[fixed]", "[grid]"});
  ExpectInError("agents = [\"dqn\", \n\"qr-dqm\"]", {"s.toml:2", "did you mean 'qr-dqn'"});
  ExpectInError("seeds = [1, \"two\"]", {"s.toml:1", "seed must be an integer", "\"two\""});
  ExpectInError("seeds = 3", {"s.toml:1", "seeds", "a list of values"});
  ExpectInError("seeds = []", {"s.toml:1", "lists no value"});
  ExpectInError("seeds = [1, 2, 1]", {"s.toml:1", "lists 1 twice"});
  ExpectInError("seeds = [[1, 2]]", {"s.toml:1", "seed must be an integer"});
  ExpectInError("seeds = [1]\n[grid]\nseed = [2]", {"s.toml:3", "line 1"});
  ExpectInError("[fixed]\nframes = 3\n[grid]\nframes = [4]", {"s.toml:4", "line 2"});
  ExpectInError("[fixed]\nframes = [3, 4]", {"s.toml:2", "frames must be an integer", "array"});
  ExpectInError("[grid]\nreplay.priority_exponent = [0.5, 9]", {"s.toml:2", "from 0 to 4", "9"});
  ExpectInError("[grid.optimiser]", {"s.toml:1", "did you mean 'optimizer'"});
  ExpectInError("list = 3", {"s.toml:1", "[[list]]"});
  ExpectInError("[[list]]\nseed = 1\n[[list]]\nseed = 1", {"s.toml:3", "twice"});
  ExpectInError("[[list]]\nseeds = [1]", {"s.toml:2", "seed"});
  ExpectInError("[[list]]\nseed = 1\n[grid]\nseed = [2]", {"line", "already"});
  ExpectInError("seeds = [1", {"s.toml:1", "not valid TOML"});
}

TEST(SweepPlan, CombinationsThatContradictThemselvesAreRefused) {
  ExpectInError(
      "[grid]\nreplay.minimum_transitions = [10, 200]\n[fixed]\n"
      "replay.capacity_transitions = 100",
      {"s.toml", "replay.minimum_transitions = 200", "learning would never start"});
}

TEST(SweepPlan, TooManyRunsAreRefused) {
  std::string values = "0";
  for (int i = 1; i < 200; ++i) values += ", " + std::to_string(i);
  ExpectInError("seeds = [" + values + "]\n[grid]\nreplay.batch_size = [1," +
                    values.substr(values.find(" 2")) + "]",
                {"more than 10000 runs"});
}

}  // namespace
}  // namespace uper
