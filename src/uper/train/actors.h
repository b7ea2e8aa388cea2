#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "uper/base/background_task.h"
#include "uper/base/random.h"
#include "uper/base/thread_pool.h"
#include "uper/envs/environment.h"
#include "uper/train/checkpoint_content.h"
#include "uper/train/checkpoint_reader.h"

namespace uper {

using EnvironmentMaker = std::function<std::unique_ptr<Environment>(std::uint64_t index)>;

// One environment of a run and how far it has come.
struct Actor {
  std::unique_ptr<Environment> environment;
  RandomStream exploration;
  std::vector<std::byte> observation = {};  // newest
  bool in_episode = false;
  int action = 0;  // chosen for the next step; counts if in_episode
  double episode_return = 0;
  std::int64_t episode_frames = 0;

  // What the last round did.
  bool was_reset = false;
  TimeStep step = {};
};

// How often threads look for the next round before they sleep (ThreadPoolOptions): for some 200
// microseconds, longer than choosing actions takes. Those that sleep are woken up late, one after
// another. Where nothing else computes on their cores they look on for milliseconds.
inline constexpr int kSpinsBetweenRounds = 6'000;
inline constexpr int kSpinsOnFreeCores = 12'000;

struct ActorsOptions {
  int environments = 1;
  int threads = 1;          // that play them
  bool free_cores = false;  // nothing else computes on the threads' cores
  std::uint64_t seed = 1;
};

// The environments of a run, played in rounds: in each one every environment plays the action that
// was chosen for it, or is reset if its episode has ended. Environments share nothing and each has
// its own streams, so results do not depend on the threads. Not thread-safe.
class Actors {
 public:
  // Environment i is make(i).
  Actors(const ActorsOptions& options, const EnvironmentMaker& make);

  std::size_t size() const { return actors_.size(); }
  Actor& operator[](std::size_t i) { return actors_[i]; }
  const EnvironmentSpec& spec() const { return actors_[0].environment->spec(); }
  ThreadPool& threads() { return pool_; }  // idle between rounds

  // One round. What was played is in was_reset, step and observation; the rest of an actor is left
  // to the caller.
  void Play() {
    Play([] {});
  }
  // The same; `beside` is called while other threads, if there are any, play already.
  void Play(const std::function<void()>& beside);
  // The same beside the caller, who must not touch the actors in between.
  void StartPlaying();
  void AwaitPlaying() { background_.Wait(); }

  // Epsilon-greedy actions for all that are in an episode. values(q [actor, action]) is asked only
  // if an action is not random.
  void ChooseActions(const std::function<void(std::span<float>)>& values, double epsilon);

  // Into the part "environment" (tensors) and "actors" of the document.
  void Save(CheckpointContent& content);
  void Restore(const LoadedCheckpoint& checkpoint);

 private:
  std::vector<Actor> actors_;
  ThreadPool pool_;
  std::vector<float> q_;                              // [actor, action]
  std::vector<std::uint8_t> greedy_;                  // [actor]
  std::vector<std::vector<std::byte>> saved_states_;  // kept for Save: tensors are views
  BackgroundTask background_;                         // last: it ends before what it works on
};

}  // namespace uper
