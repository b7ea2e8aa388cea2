#include "uper/cli/sweep/sweep_slurm.h"

#include <gtest/gtest.h>

#include "uper/cli/sweep/sweep_runner.h"

namespace uper::cli {
namespace {

TEST(SweepSlurm, ArrayNumbersStartAtOneAndAreJoined) {
  EXPECT_EQ(ArrayText(std::vector<std::size_t>{0}), "1");
  EXPECT_EQ(ArrayText(std::vector<std::size_t>{0, 1, 2, 6}), "1-3,7");
  EXPECT_EQ(ArrayText(std::vector<std::size_t>{1, 3, 4}), "2,4-5");
}

TEST(SweepSlurm, TheScriptHoldsTheOptionsAndQuotesPaths) {
  const SweepPlan plan = ParseSweepPlan(
      "[grid]\nthreads = [2, 3]\n[slurm]\npartition = \"long\"\nmax_running = 4\ngpus = 1\n"
      "warning_seconds = 33\nextra = \"--nice=5\"",
      "s.toml");
  const std::string script =
      SlurmScript(SweepFolder("/a/it's here"), plan, std::vector<std::size_t>{0, 1}, "/b/uper");
  for (const char* line :
       {"#SBATCH --array=1-2%4\n", "#SBATCH --ntasks=1 --cpus-per-task=3\n",
        "#SBATCH --partition=long\n", "#SBATCH --gres=gpu:1\n", "#SBATCH --signal=B:USR1@33\n",
        "#SBATCH --nice=5\n", "#SBATCH --requeue --open-mode=append\n",
        "'/b/uper' sweep '/a/it'\\''s here/sweep.toml' --out '/a/it'\\''s here' --only "}) {
    EXPECT_NE(script.find(line), std::string::npos) << line << " is not in\n" << script;
  }
  EXPECT_EQ(script.find("--account"), std::string::npos);
}

TEST(SweepRunner, WorkersGetProcessorsOfTheirOwn) {
  using Cpus = std::vector<std::vector<int>>;
  EXPECT_EQ(CpusOfWorkers({0, 2, 4, 6, 8}, 2, 2), (Cpus{{0, 2}, {4, 6}}));
  EXPECT_EQ(CpusOfWorkers({3, 5}, 1, 0), (Cpus{{3, 5}}));
  EXPECT_EQ(CpusOfWorkers({3, 5}, 3, 1),
            (Cpus{{}, {}, {}}));  // too few processors: no worker is pinned
}

}  // namespace
}  // namespace uper::cli
