#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/framework/claim.h"
#include "experiments/framework/settings.h"
#include "experiments/framework/timed_training.h"

namespace uper::experiments::cost_table {

struct PaperTime {
  double seconds;
  double sd_seconds;
};

// One of the paper's models, with the times of its Table 1.
struct Architecture {
  const char* name;   // as in the paper
  const char* agent;  // ours
  PaperTime cpu;
  PaperTime gpu;
};
inline constexpr std::array<Architecture, 3> kArchitectures = {
    {{"DQN", "dqn", {18.34, 0.09}, {18.39, 0.56}},
     {"QR-DQN", "qr-dqn", {17.80, 0.13}, {18.49, 0.68}},
     {"QR-DQN-ENS", "qr-ens-uper", {28.40, 0.26}, {20.74, 0.43}}}};

// The readings of the paper's setup; figure.h explains them.
inline constexpr std::array kReadings = {"literal", "script", "script-twice"};

// One row of the table.
struct Cell {
  std::string reading;
  std::string device;
  const Architecture* architecture = nullptr;
  std::vector<IterationTime> counted;  // the second half of the iterations of every seed

  double Mean() const;
  double StandardDeviation() const;
  PaperTime Paper() const { return device == "cpu" ? architecture->cpu : architecture->gpu; }
  // Adds the second half of a run's iterations.
  void Count(std::span<const IterationTime> times);
};

// The rows to measure, without times.
std::vector<Cell> EmptyTable(std::span<const std::string> readings,
                             std::span<const std::string> devices);

// The training run that a row measures.
TimedTraining TrainingFor(const Cell& cell, const Settings& settings, int seed);

// data.csv: the measured rows beside the paper's.
void WriteTable(const std::filesystem::path& file, const std::vector<Cell>& table);

// Claims T1a to T1d, each only if its rows were measured.
std::vector<Claim> CostClaims(const std::vector<Cell>& table);

}  // namespace uper::experiments::cost_table
