#pragma once

#include <cstdint>
#include <string>

#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper {

// The most that a run will need, computed from its configuration before it starts.
struct ResourcePlan {
  // Memory, in bytes.
  std::uint64_t replay = 0;
  std::uint64_t learner = 0;
  std::uint64_t saving = 0;   // the copy that a checkpoint is written from
  std::uint64_t program = 0;  // code, libraries, environments

  // Memory of the GPU, in bytes; 0 without a GPU.
  std::uint64_t gpu_replay = 0;
  std::uint64_t gpu_learner = 0;  // including the memory of the driver

  // Disk, in bytes: the numbers of one checkpoint, and the records of all checkpoints together.
  // (The oldest checkpoint has records of transitions that have left the replay memory.) Records
  // are compressed on disk, by a factor that is not known in advance: this counts them
  // uncompressed.
  std::uint64_t checkpoint = 0;
  std::uint64_t records = 0;

  std::uint64_t memory() const { return replay + learner + saving + program; }
  std::uint64_t gpu() const { return gpu_replay + gpu_learner; }
  // The segments at both ends of the records of a checkpoint: the first begins before the records,
  // the last was written before it was complete.
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

// The resources that exist; 0: not known, and not checked.
struct AvailableResources {
  std::uint64_t memory = 0;
  std::uint64_t gpu = 0;      // free
  std::uint64_t disk = 0;     // free, plus the bytes that the run folder holds already
  std::string memory_source;  // "of this machine", "of the control group"
  std::string folder;
};

// One line for people: what the run needs and what is available.
std::string DescribePlan(const ResourcePlan& plan, const AvailableResources& available);

// Throws Error(kResources) with the numbers if the plan needs more than there is.
void CheckPlan(const ResourcePlan& plan, const AvailableResources& available);

}  // namespace uper
