#pragma once

#include <cstdint>
#include <string>

#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper {

// What a run will need, at most, worked out from its configuration before it starts.
struct ResourcePlan {
  // Memory, in bytes.
  std::uint64_t replay = 0;
  std::uint64_t learner = 0;
  std::uint64_t saving = 0;   // the copy of what is being saved
  std::uint64_t program = 0;  // code, libraries, the environments

  // Memory of the GPU, in bytes; 0: none is used.
  std::uint64_t gpu_replay = 0;
  std::uint64_t gpu_learner = 0;  // with what the driver takes

  // Disk, in bytes: numbers of a checkpoint, and the records of all checkpoints together (the
  // oldest kept one still has some that are no longer in the memory). Records are compressed; how
  // well is not known before, so this counts them as they are.
  std::uint64_t checkpoint = 0;
  std::uint64_t records = 0;

  std::uint64_t memory() const { return replay + learner + saving + program; }
  std::uint64_t gpu() const { return gpu_replay + gpu_learner; }
  // The segments at both ends of a checkpoint's records: one begins before them, the other was
  // written before it was complete.
  std::uint64_t ends = 0;
  // Two checkpoints are kept while a third is written.
  std::uint64_t disk() const { return 3 * (checkpoint + ends) + records; }
};

// `frames_per_step`: FramesPerStepOf() of the environment.
ResourcePlan PlanResources(const RunConfig& config, const EnvironmentSpec& environment,
                           const LearnerSpec& learner, int frames_per_step);

// Adds what the run needs of the GPU.
void PlanGpu(const RunConfig& config, const EnvironmentSpec& environment,
             const LearnerSpec& learner, ResourcePlan& plan);

// What there is; 0: not known, which is not checked.
struct AvailableResources {
  std::uint64_t memory = 0;
  std::uint64_t gpu = 0;      // free
  std::uint64_t disk = 0;     // free, and what the run's folder holds already
  std::string memory_source;  // "of this machine", "of the control group"
  std::string folder;
};

// One line for people: what is needed of what there is.
std::string DescribePlan(const ResourcePlan& plan, const AvailableResources& available);

// Throws Error(kResources) with the numbers if the plan needs more than there is.
void CheckPlan(const ResourcePlan& plan, const AvailableResources& available);

}  // namespace uper
