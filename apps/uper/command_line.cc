#include "apps/uper/command_line.h"

// CLI11 takes seconds to compile: this is the only file that includes it.
#include <CLI/CLI.hpp>
#include <functional>

#include "apps/uper/commands.h"
#include "apps/uper/exit_code.h"

namespace uper {
namespace {

using Command = std::function<int()>;

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
  command
      ->add_option("--set", options->assignments,
                   "key=value: change a setting of the figure (may be repeated)")
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "One JSON object on standard output");
  command->footer(
      "Example: uper reproduce bandit --seeds 10 --out results/bandit\n"
      "Files: CSV data, figure.png, figure.svg, claims.json.");
  command->callback([options, &stop, &chosen] {
    chosen = [options, &stop] { return Reproduce(*options, stop); };
  });
}

void AddList(CLI::App& app, Command& chosen) {
  auto* command = app.add_subcommand("list", "List what there is, one per line");
  auto options = std::make_shared<ListOptions>();
  command->add_option("what", options->what, "envs, priorities or figures")
      ->required()
      ->check(CLI::IsMember({"envs", "priorities", "figures"}));
  command->add_flag("--json", options->json, "One JSON object on standard output");
  command->footer("Example: uper list figures");
  command->callback([options, &chosen] { chosen = [options] { return List(*options); }; });
}

void AddBench(CLI::App& app, const StopFlag& stop, Command& chosen) {
  auto* bench = app.add_subcommand("bench", "Measure speed on this machine");
  bench->require_subcommand(1);
  auto* command = bench->add_subcommand(
      "replay", "Draw, update and insert of the replay memory, beside a plain binary tree");
  auto options = std::make_shared<BenchReplayOptions>();
  command->add_option("--entries", options->entries, "Number of stored items")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Items per draw and per update")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "Measurements, for the spread")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--peers,!--no-peers", options->peers,
                    "Also time cpprb and TorchRL where Python has them (default: yes)");
  command->add_flag("--json", options->json, "One JSON object on standard output");
  command->footer("Example: uper bench replay --entries 1000000 --batch 256");
  command->callback([options, &stop, &chosen] {
    chosen = [options, &stop] { return BenchReplay(*options, stop); };
  });
}

}  // namespace

int RunCommandLine(int argc, char** argv, const StopFlag& stop) {
  CLI::App app("uper: uncertainty-prioritised experience replay");
  app.set_version_flag("--version", "uper " UPER_VERSION " (" UPER_REVISION ")");
  app.require_subcommand(1);
  app.footer("`uper COMMAND --help` shows a command's options and an example.");
  Command chosen;
  AddReproduce(app, stop, chosen);
  AddList(app, chosen);
  AddBench(app, stop, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  return chosen();
}

}  // namespace uper
