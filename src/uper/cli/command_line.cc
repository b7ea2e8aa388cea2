#include "uper/cli/command_line.h"

// CLI11 takes seconds to compile: this is the only file that includes it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "uper/base/did_you_mean.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/version.h"

namespace uper::cli {
namespace {

using Command = std::function<int()>;

constexpr const char* kJsonHelp = "One JSON object on standard output";

// A number that is too large is read as the largest one.
void AddSeed(CLI::App* command, std::uint64_t& seed, const char* help) {
  command->add_option("--seed", seed, help)
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max() - 1))
      ->capture_default_str();
}

void AddSettings(CLI::App* command, std::vector<std::string>& assignments, const char* help) {
  command->add_option("--set", assignments, std::string(help) + " (may be repeated)")
      ->take_all()
      ->allow_extra_args(false);
}

void AddRepeats(CLI::App* command, int& repeats) {
  command->add_option("--repeats", repeats, "Measurements, for the spread")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

void AddThreads(CLI::App* command, int& threads) {
  command->add_option("--threads", threads, "Threads (default: all cores)")
      ->check(CLI::Range(1, 1024));
}

// Options of commands that use an agent's learner on random data.
template <typename Options>
void AddLearnerSizes(CLI::App* command, Options& options) {
  command->add_option("--network", options.network, "nature or minatar")
      ->check(CLI::IsMember({"nature", "minatar"}))
      ->capture_default_str();
  command->add_option("--actions", options.actions, "Number of actions")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--batch", options.batch, "Transitions")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--device", options.device, "cpu, cuda or auto")->capture_default_str();
  AddSettings(command, options.assignments, "key=value: any key of the configuration");
}

// Sets the function that runs if the user chooses the command.
template <typename Options>
void RunsWith(CLI::App* command, const std::shared_ptr<Options>& options, Command& chosen,
              int (*run)(const Options&)) {
  command->callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
}
template <typename Options>
void RunsWith(CLI::App* command, const std::shared_ptr<Options>& options, Command& chosen,
              int (*run)(const Options&, const StopFlag&), const StopFlag& stop) {
  command->callback([options, run, &stop, &chosen] {
    chosen = [options, run, &stop] { return run(*options, stop); };
  });
}

void AddTrain(CLI::App& app, const StopFlag& stop, std::vector<std::string> words,
              Command& chosen) {
  auto* command = app.add_subcommand("train", "Train an agent; continues an unfinished run");
  auto options = std::make_shared<TrainOptions>();
  options->command = std::move(words);
  command->add_option("config", options->config_file, "A configuration file (TOML)");
  command->add_option("--agent", options->agent, "An agent (`uper list agents`)");
  command->add_option("--env", options->env, "An environment (`uper list envs`)");
  command->add_option("--frames", options->frames, "Length of the run; may be raised later");
  command->add_option("--seed", options->seed, "Decides everything random");
  command->add_option("--device", options->device, "cpu, cuda or auto");
  command->add_option("--out", options->folder, "Run folder (default: runs/ENV-AGENT-SEED)");
  AddSettings(command, options->assignments, "key=value: any key of the configuration");
  command->add_flag("--plots,!--no-plots", options->plots, "Draw the curves at the end");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer(
      "Example: uper train --agent qr-ens-uper --env minatar/breakout --frames 100000\n"
      "Ctrl-C saves and exits with 75; the same command goes on. Keys: docs/configuration.md");
  RunsWith(command, options, chosen, RunTrain, stop);
}

void AddEvaluate(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* command = app.add_subcommand("evaluate", "Play a trained agent");
  auto options = std::make_shared<EvaluateOptions>();
  command->add_option("run", options->run, "A run folder")->required();
  command
      ->add_option("--episodes", options->episodes,
                   "Episodes to play (default: 100; 1 with --video)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_option("--frames", options->frames, "Frames to play")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  AddSeed(command, options->seed, "Of environment and exploration");
  command
      ->add_option("--against", options->against,
                   "Also play this policy as long, and compare (random)")
      ->check(CLI::IsMember({"random"}));
  command->add_option(
      "--video", options->video,
      "Film the agent and what it is unsure of: FILE.mp4 (without ffmpeg: FILE.png) or FILE.png "
      "(animated)");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer(
      "Example: uper evaluate runs/minatar-breakout-qr-ens-uper-1 --episodes 100 --against random");
  RunsWith(command, options, chosen, RunEvaluate, stop);
}

void AddRollout(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* command = app.add_subcommand("rollout", "Run an environment alone");
  auto options = std::make_shared<RolloutOptions>();
  command->add_option("--env", options->env, "An environment (`uper list envs`)")->required();
  auto* policy =
      command->add_option("--policy", options->policy, "random")->check(CLI::IsMember({"random"}));
  auto* actions =
      command->add_option("--actions", options->actions, "A file with one action index a line");
  policy->excludes(actions);
  auto* episodes = command
                       ->add_option("--episodes", options->episodes,
                                    "Episodes to play (default: 100, or all actions)")
                       ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_option("--steps", options->steps, "Steps to play")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->excludes(episodes);
  command
      ->add_option("--environments", options->environments,
                   "Environments that share them, each with its own random numbers")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Environments that play at a time (default: one per core); changes no result")
      ->check(CLI::Range(1, 1024));
  AddSeed(command, options->seed, "Decides everything random");
  command->add_option("--dump", options->dump, "Write every step to this .npz file");
  AddSettings(command, options->assignments, "key=value: an environment.* key");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer("Example: uper rollout --env minatar/breakout --policy random --episodes 100");
  RunsWith(command, options, chosen, RunRollout, stop);
}

void AddInspectAndVerify(CLI::App& app, Command& chosen) {
  struct Entry {
    const char* name;
    const char* help;
    int (*run)(const RunOptions&);
  };
  const Entry entries[] = {{"inspect", "Print what a run folder holds", RunInspect},
                           {"verify", "Check every checksum of a run folder", RunVerify}};
  for (const Entry& entry : entries) {
    auto* command = app.add_subcommand(entry.name, entry.help);
    auto options = std::make_shared<RunOptions>();
    command->add_option("run", options->run, "A run folder")->required();
    command->add_flag("--json", options->json, kJsonHelp);
    command->footer(std::string("Example: uper ") + entry.name + " runs/minatar-breakout-dqn-1");
    RunsWith(command, options, chosen, entry.run);
  }
}

void AddDoctor(CLI::App& app, Command& chosen) {
  auto* command = app.add_subcommand("doctor", "Say what works on this machine");
  auto options = std::make_shared<DoctorOptions>();
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer("Example: uper doctor");
  RunsWith(command, options, chosen, RunDoctor);
}

void AddDumpStep(CLI::App& app, Command& chosen) {
  auto* command = app.add_subcommand(
      "dump-step", "One learner step on random data, everything in and out, as .npz");
  auto options = std::make_shared<DumpStepOptions>();
  command->add_option("--agent", options->agent, "An agent (`uper list agents`)")->required();
  AddLearnerSizes(command, *options);
  command->add_option("--members", options->members, "Ensemble members (default: the agent's)")
      ->check(CLI::Range(1, 64));
  command->add_option("--outputs", options->outputs, "Quantiles or atoms (default: the agent's)")
      ->check(CLI::Range(1, 10'000));
  command->add_option("--updates", options->updates, "Updates in a row, each on a new batch")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddSeed(command, options->seed, "Of parameters and data");
  command->add_option("--out", options->out, "The .npz file")->required();
  command->footer("Example: uper dump-step --agent qr-ens-uper --out step.npz");
  RunsWith(command, options, chosen, RunDumpStep);
}

void AddReproduce(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* command =
      app.add_subcommand("reproduce", "Regenerate a figure of the paper and test its claims");
  auto options = std::make_shared<ReproduceOptions>();
  command->add_option("figure", options->figure, "A figure id (`uper list figures`), or all")
      ->required();
  command->add_option("runs", options->runs, "Training runs, for the figures that need them");
  command->add_option("--out", options->folder,
                      "Folder for the files (default: results/FIGURE; for all: results)");
  command->add_option("--seeds", options->seeds, "Number of seeds (default: the figure's own)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--jobs", options->jobs, "Threads (default: all cores); results are the same")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--strict", options->strict, "Exit with 1 when a claim fails");
  AddSettings(command, options->assignments, "key=value: change a setting of the figure");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer(
      "Example: uper reproduce bandit --seeds 10 --out results/bandit\n"
      "         uper reproduce atari-median runs/* --set published=true\n"
      "Files: CSV data, figure.png, figure.svg, claims.json.");
  RunsWith(command, options, chosen, RunReproduce, stop);
}

void AddReport(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* command =
      app.add_subcommand("report", "Aggregate training runs: tables, statistics, plots");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("runs", options->runs, "Run folders, or folders that hold them")->required();
  command->add_option("--out", options->folder, "Folder for the files (default: results/report)");
  command->add_option("--baseline", options->baseline,
                      "Compare every agent with this one (default: UPER with every other)");
  command->add_option("--references", options->references,
                      "CSV file env,random,reference: the scores that stand for 0 and 1");
  command->add_option("--window", options->window, "Evaluations in the trailing mean of a curve")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--published", options->published, "Draw published curves behind");
  command->add_flag("--partial", options->partial, "Take unfinished runs, as far as all go");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer(
      "Example: uper report runs/* --out results/report\n"
      "Files: report.html (works without a network), CSV data, PNG and SVG pictures.");
  RunsWith(command, options, chosen, RunReport, stop);
}

void AddSweep(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* command = app.add_subcommand("sweep", "Many runs from one file; continues a sweep");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("file", options->file, "What to run (TOML; docs/sweeps.md)")->required();
  command->add_option("--out", options->folder, "Folder of the sweep (default: sweeps/FILE)");
  auto* jobs =
      command->add_option("--jobs", options->jobs, "Runs at a time (default: what the cores hold)")
          ->check(CLI::Range(1, 4096));
  auto* slurm =
      command->add_flag("--slurm", options->slurm, "Submit an array job to Slurm")->excludes(jobs);
  auto* summary =
      command
          ->add_flag("--summary", options->summary, "Start nothing: only say how far each run is")
          ->excludes(slurm);
  command->add_option("--only", options->only, "Run only this one, counted from 1, in this process")
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(slurm)
      ->excludes(summary);
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer(
      "Example: uper sweep configs/sweeps/minatar-noise.toml --jobs 2\n"
      "Ctrl-C saves and exits with 75; the same command goes on. It also tries failed runs again.");
  RunsWith(command, options, chosen, RunSweep, stop);
}

void AddList(CLI::App& app, Command& chosen) {
  auto* command = app.add_subcommand("list", "List what there is, one per line");
  auto options = std::make_shared<ListOptions>();
  command->add_option("what", options->what, "envs, agents, priorities, figures, keys or columns")
      ->required()
      ->check(CLI::IsMember({"envs", "agents", "priorities", "figures", "keys", "columns"}));
  auto* json = command->add_flag("--json", options->json, kJsonHelp);
  command
      ->add_flag("--markdown", options->markdown,
                 "Print priorities, keys or columns as the tables of the documents")
      ->excludes(json);
  command->footer("Example: uper list figures");
  RunsWith(command, options, chosen, RunList);
}

void AddBenchReplay(CLI::App& bench, const StopFlag& stop, Command& chosen) {
  auto* command = bench.add_subcommand(
      "replay", "Draw, update and insert of the replay memory, beside a plain binary tree");
  auto options = std::make_shared<BenchReplayOptions>();
  command->add_option("--entries", options->entries, "Number of stored items")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Items per draw and per update")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  AddRepeats(command, options->repeats);
  command->add_flag("--peers,!--no-peers", options->peers,
                    "Also time cpprb and TorchRL where Python has them (default: yes)");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer("Example: uper bench replay --entries 1000000 --batch 256");
  RunsWith(command, options, chosen, RunBenchReplay, stop);
}

void AddBenchLearner(CLI::App& bench, const StopFlag& stop, Command& chosen) {
  auto* command = bench.add_subcommand("learner", "One update, and one acting decision");
  auto options = std::make_shared<BenchLearnerOptions>();
  command->add_option("--agent", options->agent, "An agent")->capture_default_str();
  AddLearnerSizes(command, *options);
  AddThreads(command, options->threads);
  AddRepeats(command, options->repeats);
  command->add_flag("--peers,!--no-peers", options->peers,
                    "CPU: also time PyTorch where Python has it (default: yes)");
  command->add_flag("--parts", options->parts,
                    "CPU: time every part of an update instead, beside what the machine can do");
  command->add_option("--instructions", options->instructions,
                      "CPU: AVX2, or what else `uper doctor` calls kernels (default: the best)");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer("Example: uper bench learner --agent qr-ens-uper --network minatar");
  RunsWith(command, options, chosen, RunBenchLearner, stop);
}

void AddBenchEnv(CLI::App& bench, const StopFlag& stop, Command& chosen) {
  auto* command = bench.add_subcommand("env", "Steps of an environment under random actions");
  auto options = std::make_shared<BenchEnvOptions>();
  command->add_option("--env", options->env, "An environment")->capture_default_str();
  command->add_option("--threads", options->threads, "One environment each")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--environments", options->environments,
                   "Atari: of a pool that steps together (default: four per thread)")
      ->check(CLI::Range(1, 4096));
  AddRepeats(command, options->repeats);
  command->add_flag("--peers,!--no-peers", options->peers,
                    "Atari: also time EnvPool and ALE's vector environment where Python has them "
                    "(default: yes)");
  AddSettings(command, options->assignments, "key=value: an environment.* key");
  command->add_flag("--json", options->json, kJsonHelp);
  command->footer("Example: uper bench env --env minatar/breakout");
  RunsWith(command, options, chosen, RunBenchEnv, stop);
}

void AddBenchTrain(CLI::App& bench, const StopFlag& stop, Command& chosen) {
  auto* command = bench.add_subcommand("train", "A whole training loop, and where its time goes");
  auto options = std::make_shared<BenchTrainOptions>();
  command->add_option("--env", options->env, "An environment")->capture_default_str();
  command->add_option("--agent", options->agent, "An agent")->capture_default_str();
  command->add_option("--frames", options->frames, "Frames to train")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  AddThreads(command, options->threads);
  command->add_option("--environments", options->environments, "Environments in step")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--runs", options->runs,
                   "Runs side by side, until the first has its frames; by default a thread each")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", options->device, "cpu, cuda or auto");
  AddSettings(command, options->assignments, "key=value: any key of the configuration");
  command->add_flag("--json", options->json, kJsonHelp);
  command
      ->add_option("--replay-transitions", options->replay_transitions,
                   "Transitions in memory before; then saving is measured too")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32));
  command->footer("Example: uper bench train --env minatar/breakout --agent dqn");
  RunsWith(command, options, chosen, RunBenchTrain, stop);
}

void AddBench(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* bench = app.add_subcommand("bench", "Measure speed on this machine");
  bench->require_subcommand(1);
  AddBenchReplay(*bench, stop, chosen);
  AddBenchLearner(*bench, stop, chosen);
  AddBenchEnv(*bench, stop, chosen);
  AddBenchTrain(*bench, stop, chosen);
}

// A message about the first command or option that does not exist, with the nearest one that does.
// Empty if all exist.
std::string UnknownWord(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const bool is_option = name.starts_with("--") && name.size() > 2;
    std::vector<std::string> known;
    if (is_option) {
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
      }
    } else if (!name.starts_with("-")) {
      for (const CLI::App* sub : command->get_subcommands(nullptr))
        known.push_back(sub->get_name());
    }
    if (known.empty()) continue;
    if (std::ranges::find(known, name) == known.end()) {
      return fmt::format("unknown {} '{}'{}\n", is_option ? "option" : "command", name,
                         DidYouMean(name, known));
    }
    if (!is_option) command = command->get_subcommand(name);
  }
  return "";
}

}  // namespace

int RunCommandLine(int argc, char** argv, const StopFlag& stop) {
  CLI::App app("uper: uncertainty-prioritized experience replay");
  app.set_version_flag("--version", "uper " + ProgramVersion() + " (" + ProgramRevision() + ")");
  app.require_subcommand(1);
  app.footer("`uper COMMAND --help` shows a command's options and an example.");
  Command chosen;
  AddTrain(app, stop, {argv, argv + argc}, chosen);
  AddEvaluate(app, stop, chosen);
  AddRollout(app, stop, chosen);
  AddReproduce(app, stop, chosen);
  AddReport(app, stop, chosen);
  AddSweep(app, stop, chosen);
  AddInspectAndVerify(app, chosen);
  AddDumpStep(app, chosen);
  AddList(app, chosen);
  AddDoctor(app, chosen);
  AddBench(app, stop, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kExitDone;
    fmt::print(stderr, "{}", UnknownWord(app, {argv + 1, argv + argc}));
    return kExitUsage;
  }
  return chosen();
}

}  // namespace uper::cli
