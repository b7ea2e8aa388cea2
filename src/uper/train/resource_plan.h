#pragma once

#include <cstdint>
#include <string>

#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config.h"

namespace uper {

// What a run will need, at most, worked out from its configuration before it starts.
struct ResourcePlan {
  // Memory, in bytes.
  std::uint64_t replay = 0;
  std::uint64_t learner = 0;
  std::uint64_t saving = 0;   // the copy of what is being saved
  std::uint64_t program = 0;  // code, libraries, the environments

  // Disk, in bytes: numbers of a checkpoint, and the records that all checkpoints share. Records
  // are compressed; how well is not known before, so this counts them as they are.
  std::uint64_t checkpoint = 0;
  std::uint64_t records = 0;

  std::uint64_t memory() const { return replay + learner + saving + program; }
  // Two checkpoints are kept while a third is written.
  std::uint64_t disk() const { return 3 * checkpoint + records; }
};

ResourcePlan PlanResources(const RunConfig& config, const EnvironmentSpec& environment,
                           const LearnerSpec& learner);

// What there is; 0: not known, which is not checked.
struct AvailableResources {
  std::uint64_t memory = 0;
  std::uint64_t disk = 0;       // free, and what the run's folder holds already
  std::string memory_source;    // "of this machine", "of the control group"
  std::string folder;
};

// One line for people: what is needed of what there is.
std::string DescribePlan(const ResourcePlan& plan, const AvailableResources& available);

// Throws Error(kResources) with the numbers if the plan needs more than there is.
void CheckPlan(const ResourcePlan& plan, const AvailableResources& available);

}  // namespace uper
