#include "uper/cli/sweep/sweep_slurm.h"

#include <fmt/format.h>

#include <fstream>

#include "uper/base/error.h"
#include "uper/base/files/atomic_file.h"
#include "uper/cli/sweep/child_process.h"

namespace uper::cli {
namespace {

// Quotes a word for bash.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += "'\\'";
    quoted += c;
  }
  quoted += '\'';
  return quoted;
}

std::string Directives(const SweepFolder& folder, const SweepPlan& plan,
                       std::span<const std::size_t> runs) {
  const SlurmOptions& slurm = plan.slurm;
  std::string text;
  const auto add = [&](const std::string& option) { text += "#SBATCH " + option + "\n"; };
  const auto add_text = [&](const char* option, const std::string& value) {
    if (!value.empty()) add(fmt::format("--{}={}", option, value));
  };
  add_text("job-name", "uper-" + folder.path().filename().string());
  add(fmt::format("--array={}{}", ArrayText(runs),
                  slurm.max_running > 0 ? fmt::format("%{}", slurm.max_running) : ""));
  const int cpus = slurm.cpus > 0 ? slurm.cpus : std::max(1, plan.MostThreads());
  add(fmt::format("--ntasks=1 --cpus-per-task={}", cpus));
  add_text("partition", slurm.partition);
  add_text("account", slurm.account);
  add_text("qos", slurm.qos);
  add_text("constraint", slurm.constraint);
  add_text("time", slurm.time);
  add_text("mem", slurm.memory);
  if (slurm.gpus > 0) add(fmt::format("--gres=gpu:{}", slurm.gpus));
  add("--requeue --open-mode=append");
  add(fmt::format("--signal=B:USR1@{}", slurm.warning_seconds));
  // Slurm takes quotes around a value with spaces; %a is the element.
  add(fmt::format("--output=\"{}/%a.log\"", folder.slurm().string()));
  if (!slurm.extra.empty()) add(slurm.extra);
  return text;
}

// The unfinished elements of the job, as squeue prints them. Empty for a job that Slurm no longer
// lists.
std::string QueuedElements(const std::string& job) {
  return RunCommand({"squeue", "--noheader", "--array", "--format=%i", "--jobs=" + job}, true)
      .output;
}

std::string FormerJob(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string job;
  std::getline(stream, job);
  return job;
}

}  // namespace

std::string ArrayText(std::span<const std::size_t> runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t last = i;
    while (last + 1 < runs.size() && runs[last + 1] == runs[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text +=
        last > i ? fmt::format("{}-{}", runs[i] + 1, runs[last] + 1) : std::to_string(runs[i] + 1);
    i = last + 1;
  }
  return text;
}

std::string SlurmScript(const SweepFolder& folder, const SweepPlan& plan,
                        std::span<const std::size_t> runs, const std::string& program) {
  return "#!/bin/bash\n" + Directives(folder, plan, runs) +
         fmt::format(R"(
# Each element is one run of a sweep. SIGTERM (the job is preempted or canceled): the run saves;
# Slurm itself queues a preempted job again. SIGUSR1 (the time limit is near): the run saves and
# this script queues it again. Where it goes on from is in the run's folder.
again=no
trap 'kill -TERM "$run" 2>/dev/null' TERM
trap 'again=yes; kill -TERM "$run" 2>/dev/null' USR1
{} sweep {} --out {} --only "$SLURM_ARRAY_TASK_ID" &
run=$!
wait "$run"
code=$?
# `wait` also returns when a signal was handled.
while kill -0 "$run" 2>/dev/null; do wait "$run"; code=$?; done
if [ "$again" = yes ] && [ "$code" = 75 ]; then
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$code"
)",
                     Quoted(program), Quoted(folder.file().string()),
                     Quoted(folder.path().string()));
}

std::string SubmitToSlurm(const SweepFolder& folder, const SweepPlan& plan,
                          std::span<const std::size_t> runs) {
  const std::filesystem::path script = folder.slurm() / "job.sh";
  const std::filesystem::path number = folder.slurm() / "job_id";
  CreateWritableFolder(folder.slurm());
  if (const std::string job = FormerJob(number); !job.empty() && !QueuedElements(job).empty()) {
    throw Error(ErrorKind::kResources, "job " + job +
                                           " of this sweep is still queued or running; wait for "
                                           "it (`squeue -j " +
                                           job + "`) or end it (`scancel " + job + "`)");
  }
  WriteFileAtomically(script, SlurmScript(folder, plan, runs, ThisProgram().string()));
  const CommandResult result = RunCommand({"sbatch", "--parsable", script.string()});
  // "123" or "123;cluster"
  const std::string job = result.output.substr(0, result.output.find_first_of(";\n"));
  if (result.exit_status != 0 || job.empty()) {
    throw Error(ErrorKind::kResources,
                "sbatch refused " + script.string() + " (its message is above)");
  }
  WriteFileAtomically(number, job + "\n");
  return job;
}

}  // namespace uper::cli
