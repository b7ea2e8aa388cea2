#pragma once

#include <memory>
#include <string>

#include "uper/base/threads/thread_pool.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/trainer.h"
#include "uper/train/run/resource_plan.h"
#include "uper/train/run/run_folder.h"

namespace uper {

// From a configuration to the concrete parts of a run: the one place where environments, learners
// and memories are chosen.

// Threads that `threads` of a configuration means: 0 is all cores.
int ThreadsOf(const RunConfig& config);

// Raw frames of one step of the agent, at most.
int FramesPerStepOf(const RunConfig& config);

// Resolves `device` of a configuration on this machine to kCpu or kCuda. Throws Error(kResources)
// if the configuration names the GPU and it cannot be used, Error(kUsage) if the precision needs
// one and `device` leaves it open.
DeviceChoice ResolveDevice(const RunConfig& config);
// The reason why `device = "auto"` is the CPU on this machine. Empty if it is the GPU, or if this
// build does not support GPUs.
std::string CpuFallbackReason(const RunConfig& config);
// A learner with parameters that are not initialized. The pool must outlive it.
std::unique_ptr<Learner> MakeLearnerOn(DeviceChoice device, const LearnerSpec& spec,
                                       ThreadPool& pool);

EnvironmentSpec SpecFor(const RunConfig& config);  // of its environment
// Throws what MakeEnvironmentFor() would throw.
void CheckEnvironmentFor(const RunConfig& config);
std::unique_ptr<Environment> MakeEnvironmentFor(const RunConfig& config, std::uint64_t index);
// As MakeLearnerOn(), for the configuration's device, network and environment.
std::unique_ptr<Learner> MakeLearnerFor(const RunConfig& config, ThreadPool& pool);
// Throws Error(kResources) if there is not enough memory.
TrainerParts MakeTrainerParts(const RunConfig& config, ThreadPool& pool);

// The resources that the run will need, and those that this machine and its folder have.
ResourcePlan PlanRun(const RunConfig& config);
AvailableResources ResourcesFor(const RunFolder& folder);

// A trained agent from a run folder: its configuration and its newest checkpoint.
// Throws Error(kMissingData) if there is no run or nothing was saved yet.
struct SavedRun {
  RunConfig config;
  checkpoint::LoadedCheckpoint checkpoint;
};
SavedRun OpenRun(const RunFolder& folder);

}  // namespace uper
