#pragma once

#include <span>
#include <string>

#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper::cli {

// The script of an array job for these runs, which are counted from 0. The number of an element is
// the run's number plus 1. `folder` and `program` must be absolute paths.
std::string SlurmScript(const SweepFolder& folder, const SweepPlan& plan,
                        std::span<const std::size_t> runs, const std::string& program);

// "1-3,7" for the numbers 0, 1, 2, 6.
std::string ArrayText(std::span<const std::size_t> runs);

// Writes the script into the folder and submits it. Returns the number of the job. Throws
// Error(kMissingData) without Slurm, and Error(kResources) if Slurm refuses the job or still has
// elements of this folder's last job.
std::string SubmitToSlurm(const SweepFolder& folder, const SweepPlan& plan,
                          std::span<const std::size_t> runs);

}  // namespace uper::cli
