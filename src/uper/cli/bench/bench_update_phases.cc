#include "uper/cli/bench/bench_update_phases.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "uper/cli/bench/bench_timing.h"
#include "uper/cli/bench/machine_limits.h"
#include "uper/cli/bench/random_batch.h"
#include "uper/cli/exit_code.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/cpu/update_cost.h"
#include "uper/train/run/make_learner.h"

namespace uper::cli {
namespace {

constexpr double kSecondsPerMeasurement = 0.2;

constexpr const char* kPhaseNames[cpu::kUpdatePhases] = {
    "convolutions", "dense layers",       "target actions",     "head",     "loss, statistics",
    "head, back",   "other layers, back", "weights' gradients", "optimizer"};

struct MachineLimits {
  double flops = 0;  // both per second
  double bytes = 0;
};

// One line of the table.
struct PhaseRow {
  std::string name;
  cpu::PhaseCost work;
  double seconds = 0;
};

// Seconds of each phase of an update, from the measurement with the fastest update.
std::vector<double> MeasurePhases(const BenchLearnerOptions& options, cpu::CpuLearner& learner,
                                  const RandomBatch& batch, const StopFlag& stop) {
  std::vector<double> best;
  double least = 0;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    cpu::UpdateProfile profile;
    learner.SetProfile(&profile);
    int updates = 0;
    const auto start = std::chrono::steady_clock::now();
    while (updates == 0 || SecondsSince(start) < kSecondsPerMeasurement) {
      if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
      learner.Update(batch.View());
      ++updates;
    }
    learner.SetProfile(nullptr);
    std::vector<double> seconds;
    double sum = 0;
    for (std::size_t i = 0; i < cpu::kUpdatePhases; ++i) {
      seconds.push_back(profile.seconds(static_cast<cpu::UpdatePhase>(i)) / updates);
      sum += seconds.back();
    }
    if (repeat == 0 || sum < least) {
      least = sum;
      best = seconds;
    }
  }
  return best;
}

std::vector<PhaseRow> RowsOf(const std::array<cpu::PhaseCost, cpu::kUpdatePhases>& work,
                             const std::vector<double>& seconds) {
  std::vector<PhaseRow> rows;
  PhaseRow all{.name = "whole update"};
  for (std::size_t i = 0; i < cpu::kUpdatePhases; ++i) {
    rows.push_back({kPhaseNames[i], work[i], seconds[i]});
    all.work.flop += work[i].flop;
    all.work.bytes += work[i].bytes;
    all.seconds += seconds[i];
  }
  rows.push_back(all);
  return rows;
}

void PrintRows(const std::vector<PhaseRow>& rows, const MachineLimits& limits) {
  fmt::print("{:20} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>8}\n", "", "MFLOP", "MB", "us",
             "GFLOP/s", "of GEMM", "GB/s", "of triad");
  for (const PhaseRow& row : rows) {
    const double flops = row.work.flop / row.seconds;
    const double bytes = row.work.bytes / row.seconds;
    fmt::print("{:20} {:9.2f} {:9.2f} {:9.1f} {:9.1f} {:6.0f}% {:9.1f} {:7.0f}%\n", row.name,
               row.work.flop / 1e6, row.work.bytes / 1e6, 1e6 * row.seconds, flops / 1e9,
               100 * flops / limits.flops, bytes / 1e9, 100 * bytes / limits.bytes);
  }
}

nlohmann::ordered_json RowsJson(const std::vector<PhaseRow>& rows, const MachineLimits& limits) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PhaseRow& row : rows) {
    list.push_back({{"part", row.name},
                    {"flop", row.work.flop},
                    {"bytes", row.work.bytes},
                    {"seconds", row.seconds},
                    {"share_of_product_rate", row.work.flop / row.seconds / limits.flops},
                    {"share_of_memory_rate", row.work.bytes / row.seconds / limits.bytes}});
  }
  return list;
}

}  // namespace

int BenchUpdatePhases(const BenchLearnerOptions& options, const StopFlag& stop) {
  const RunConfig config = ConfigOf(options);
  if (config.device == DeviceChoice::kCuda) {
    throw Error(ErrorKind::kUsage, "--parts times the CPU's learner: leave out --device cuda");
  }
  const LearnerSpec spec = LearnerSpecFrom(config, ObservationsOf(options));
  ThreadPool pool(options.threads > 0 ? options.threads : AvailableCores());
  const MachineLimits limits{.flops = MeasureProductRate(pool), .bytes = MeasureMemoryRate(pool)};
  cpu::CpuLearner learner(spec, pool);
  InitializeLearner(config, learner);
  const RandomBatch batch(config, spec, ObservationsOf(options));
  for (int i = 0; i < 3; ++i) learner.Update(batch.View());  // warms up
  const std::vector<PhaseRow> rows = RowsOf(cpu::CostOfUpdate(spec, config.agent.mask_probability),
                                            MeasurePhases(options, learner, batch, stop));
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"agent", options.agent},         {"network", options.network},
        {"actions", options.actions},     {"batch", spec.batch},
        {"threads", pool.threads()},      {"instruction_set", cpu::SimdTargetName()},
        {"product_flops", limits.flops},  {"memory_bytes_per_second", limits.bytes},
        {"parts", RowsJson(rows, limits)}};
    fmt::print("{}\n", json.dump());
    return kExitDone;
  }
  fmt::print("{} on {}, {} actions, batch {}, {} threads, {}\n", options.agent, options.network,
             options.actions, spec.batch, pool.threads(), cpu::SimdTargetName());
  fmt::print("the machine: {:.0f} GFLOP/s (our product, in cache), {:.1f} GB/s (triad)\n",
             limits.flops / 1e9, limits.bytes / 1e9);
  PrintRows(rows, limits);
  return kExitDone;
}

}  // namespace uper::cli
