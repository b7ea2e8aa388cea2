#pragma once

#include <span>
#include <string>

#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper {

// The script of an array job whose elements are the runs of these numbers (counted from 0; an
// element has the run's number plus 1). `folder` and `program` are absolute paths.
std::string SlurmScript(const SweepFolder& folder, const SweepPlan& plan,
                        std::span<const std::size_t> runs, const std::string& program);

// "1-3,7" for the numbers 0, 1, 2, 6.
std::string ArrayText(std::span<const std::size_t> runs);

// Writes the script into the folder and submits it; the number of the job. Throws
// Error(kMissingData) if there is no Slurm here, Error(kResources) if it refuses or if elements of
// the last job of this folder are still queued or running.
std::string SubmitToSlurm(const SweepFolder& folder, const SweepPlan& plan,
                          std::span<const std::size_t> runs);

}  // namespace uper
