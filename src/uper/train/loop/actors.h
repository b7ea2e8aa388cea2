#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/base/threads/task_queue.h"
#include "uper/checkpoint/checkpoint_content.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/envs/environment.h"

namespace uper {

using EnvironmentMaker = std::function<std::unique_ptr<Environment>(std::uint64_t index)>;

// What an environment did in a round.
struct Played {
  bool was_reset = false;
  int action = 0;                         // this and
  TimeStep step = {};                     // this count unless it was reset
  std::span<std::byte> observation = {};  // newest
};

// One environment of a run and how far it has come.
struct Actor {
  std::unique_ptr<Environment> environment;
  RandomStream exploration;
  bool in_episode = false;  // after what it has played
  int action = 0;           // chosen for the next step; counts if in_episode
  double episode_return = 0;
  std::int64_t episode_frames = 0;
};

// How often threads look for the next round before they sleep (TaskQueueOptions): for some 200
// microseconds, longer than choosing actions takes. Those that sleep are woken up late, one after
// another. Where nothing else computes on their cores they look on for milliseconds.
inline constexpr int kSpinsBetweenRounds = 6'000;
inline constexpr int kSpinsOnFreeCores = 12'000;

struct ActorsOptions {
  int environments = 1;
  int workers = 0;          // threads that play them, beside the caller
  bool free_cores = false;  // nothing else computes on the workers' cores
  std::uint64_t seed = 1;
};

// The environments of a run, played in rounds: in each one every environment plays the action that
// was chosen for it, or is reset if its episode has ended. One that has played may begin the next
// round before the others have played this one. Environments share nothing and each has its own
// streams, so results do not depend on who plays when. Not thread-safe.
class Actors {
 public:
  // Environment i is make(i).
  Actors(const ActorsOptions& options, const EnvironmentMaker& make);

  std::size_t size() const { return actors_.size(); }
  // Its episode is left to the caller, and so is the rest while nothing of it is under way.
  Actor& operator[](std::size_t i) { return actors_[i]; }
  const EnvironmentSpec& spec() const { return actors_[0].environment->spec(); }
  int workers() const { return queue_.workers(); }

  // Where observations go from now on, [actor, observation]: memory of the caller's, which holds
  // until the round after has ended. Needed for every round that actors begin while others play the
  // one before. REQUIRES: nobody has begun this round, or all have and nobody is ahead.
  void UseMemory(std::span<std::byte> observations);

  // Hands an actor's step of this round, or of the next if it has played this one, to the workers:
  // then it is ahead.
  void Begin(std::size_t i);
  // The same, played by the caller at once: no worker need be woken up.
  void PlayNow(std::size_t i);
  bool HasBegun(std::size_t i) const { return progress_[i].begun > round_; }
  bool HasPlayed(std::size_t i) const {
    return progress_[i].played.load(std::memory_order_acquire) > round_;
  }
  bool IsAhead(std::size_t i) const { return progress_[i].begun > round_ + 1; }
  bool AnyHasBegun() const { return Count(&Actors::HasBegun) > 0; }
  bool AnyHasPlayed() const { return Count(&Actors::HasPlayed) > 0; }
  std::size_t CountAhead() const { return Count(&Actors::IsAhead); }
  // REQUIRES: HasPlayed(i). Throws what the environment threw, once nothing is under way.
  const Played& PlayedBy(std::size_t i);
  // The caller plays one that no worker has taken. Returns whether it did.
  bool Help() { return queue_.RunOne(); }
  // Have more begun than workers can play?
  bool NeedsHelp() const { return UnderWay() > workers(); }
  // REQUIRES: all have played this one.
  void NextRound();

  // Epsilon-greedy actions for those of `who` that are in an episode; epsilon(i). values(q [actor,
  // action]) is asked for their rows, only if an action is not random.
  void ChooseActions(std::span<const std::size_t> who,
                     const std::function<double(std::size_t)>& epsilon,
                     const std::function<void(std::span<float>)>& values);

  // Into the part "environment" (tensors) and "actors" of the document. REQUIRES: nothing is under
  // way.
  void Save(CheckpointContent& content);
  void Restore(const LoadedCheckpoint& checkpoint);

 private:
  // In rounds; written by the caller but for `played` and `failure`.
  struct alignas(64) Progress {
    std::atomic<std::int64_t> played{0};
    std::int64_t begun = 0;
    std::exception_ptr failure;
    Played last[2];  // [round % 2]
  };

  std::size_t Count(bool (Actors::*is)(std::size_t) const) const;
  void Prepare(std::size_t i);
  void Play(int i);
  int UnderWay() const;

  std::vector<Actor> actors_;
  std::vector<Progress> progress_;
  std::int64_t round_ = 0;
  std::vector<std::byte> own_memory_;                 // [actor, observation]
  std::span<std::byte> memory_;                       // that, or the caller's
  std::vector<float> q_;                              // [actor, action]
  std::vector<std::uint8_t> greedy_;                  // [actor]
  std::vector<std::vector<std::byte>> saved_states_;  // kept for Save: tensors are views
  TaskQueue queue_;                                   // last: it ends before what it works on
};

}  // namespace uper
