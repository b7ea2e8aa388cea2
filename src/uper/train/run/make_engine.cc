#include "uper/train/run/make_engine.h"

#include <algorithm>

#include "uper/engine/device_engine.h"
#include "uper/engine/host_engine.h"
#include "uper/train/run/make_store.h"

namespace uper {
namespace {

bool Overlaps(const RunConfig& config, bool on_device) {
  if (config.overlap_updates == Overlap::kAuto) return on_device;
  return config.overlap_updates == Overlap::kYes;
}

// The trainer's own thread plays, too, unless it learns meanwhile.
ActorsOptions ActorsFrom(const RunConfig& config, int threads, bool on_device) {
  const int players = std::clamp(threads, 1, config.environments);
  const bool learns_meanwhile = Overlaps(config, on_device) && !on_device;
  return {.environments = config.environments,
          .workers = learns_meanwhile ? players : players - 1,
          .free_cores = config.environments > 1 && on_device,
          .seed = static_cast<std::uint64_t>(config.seed)};
}

}  // namespace

void AddEngine(const RunConfig& config, const EnvironmentSpec& environment, int threads,
               TrainerParts& parts) {
  const bool on_device = parts.device_replay != nullptr;
  TransitionStoreOptions store = StoreOptionsFrom(config, environment);
  if (on_device && parts.device_replay->spec().samples_on_device) {
    store.replay.buffer.selector = SelectorKind::kMirror;
  }
  parts.store = MakeTransitionStore(store, static_cast<std::uint64_t>(config.seed));
  parts.record = std::make_unique<TrainingRecord>();
  parts.actors = ActorsFrom(config, threads, on_device);
  const EngineSpec spec{.actors = config.environments,
                        .overlap = Overlaps(config, on_device),
                        .normalization = config.replay.weight_normalization,
                        .rule = config.agent.priority,
                        .limits = PriorityLimitsFrom(config)};
  parts.engine = on_device ? MakeDeviceEngine(spec, *parts.learner, *parts.store,
                                              *parts.device_replay, *parts.record)
                           : MakeHostEngine(spec, *parts.learner, *parts.store, *parts.record);
}

}  // namespace uper
