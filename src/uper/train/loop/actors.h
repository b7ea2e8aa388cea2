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
#include "uper/engine/engine.h"
#include "uper/envs/environment.h"

namespace uper {

using EnvironmentMaker = std::function<std::unique_ptr<Environment>(std::uint64_t index)>;

// An actor's part of a round: a step, or a reset.
struct ActorStep {
  bool was_reset = false;
  int action = 0;                         // of the step
  TimeStep step = {};                     // unless it was reset
  std::span<std::byte> observation = {};  // the newest
};

// One environment of a run and how far it has come.
struct Actor {
  std::unique_ptr<Environment> environment;
  RandomStream exploration;
  bool in_episode = false;  // after its last step
  int action = 0;           // chosen for the next step; used only if in_episode
  double episode_return = 0;
  std::int64_t episode_frames = 0;
};

// How often a waiting thread looks for work before it sleeps (TaskQueueOptions): for about 200
// microseconds, longer than choosing actions takes. Sleeping threads are woken late, and one after
// another. If nothing else computes on their cores, they look for milliseconds.
inline constexpr int kSpinsBetweenRounds = 6'000;
inline constexpr int kSpinsOnFreeCores = 12'000;

struct ActorsOptions {
  int environments = 1;
  int workers = 0;          // threads that play them, besides the caller
  bool free_cores = false;  // nothing else computes on the workers' cores
  std::uint64_t seed = 1;
};

// The environments of a run, played in rounds. In each round every environment plays the action
// that was chosen for it, or is reset if its episode has ended. An actor that is done may start the
// next round before the others are done: it is ahead. Environments share nothing and each has its
// own streams, so results do not depend on the order in which they play. Not thread-safe.
class Actors {
 public:
  // Environment i is make(i).
  Actors(const ActorsOptions& options, const EnvironmentMaker& make);

  std::size_t size() const { return actors_.size(); }
  // The caller updates the return and the frames of the episode. It may change the other fields
  // while no step is under way.
  Actor& operator[](std::size_t i) { return actors_[i]; }
  const EnvironmentSpec& spec() const { return actors_[0].environment->spec(); }
  // Whether a round may end earlier if some actors begin it earlier. Without workers they would
  // only wait, unless there is one actor.
  bool GainFromGoingAhead() const { return size() == 1 || workers() > 0; }

  // Sets the buffer that environments write to, [actor, observation]. The caller owns it and keeps
  // it until the end of the next round. Every round that an actor starts ahead needs a buffer of
  // its own. REQUIRES: no actor has started this round, or all have and none is ahead.
  void SetObservationBuffer(std::span<std::byte> observations);

  // Gives an actor's next step to the workers. It is a step of this round, or of the next one if
  // the actor is done with this one.
  void Start(std::size_t i);
  // Plays that step in the calling thread at once, so that no worker must be woken.
  void PlayHere(std::size_t i);
  // Starts this round for all actors that have not started it. With `caller_is_idle` a single actor
  // plays at once in the calling thread, so that no worker must be woken.
  void StartRest(bool caller_is_idle);
  bool IsStarted(std::size_t i) const { return progress_[i].begun > round_; }
  bool IsDone(std::size_t i) const {
    return progress_[i].played.load(std::memory_order_acquire) > round_;
  }
  bool IsAhead(std::size_t i) const { return progress_[i].begun > round_ + 1; }
  bool AnyIsStarted() const { return Count(&Actors::IsStarted) > 0; }
  bool AnyIsDone() const { return Count(&Actors::IsDone) > 0; }
  std::size_t CountAhead() const { return Count(&Actors::IsAhead); }
  // REQUIRES: IsDone(i). Throws what the environment threw, after all steps under way have ended.
  const ActorStep& StepOf(std::size_t i);
  // Plays a step that no worker has taken. Returns whether there was one.
  bool PlayOneHere() { return queue_.RunOne(); }
  // Whether more steps are under way than there are workers.
  bool HasBacklog() const { return UnderWay() > workers(); }
  // REQUIRES: all actors are done with this round.
  void NextRound();

  // Chooses an actor's next action epsilon-greedily, in two calls. This call draws whether the
  // actor explores, and its random action if it does. Returns whether it explores. REQUIRES: it is
  // in an episode.
  bool DrawExploration(std::size_t i, double epsilon);
  // The second call, for many actors: sets the best action of each view's actor unless it explores;
  // values [view, action].
  void SetGreedyActions(std::span<const ActorView> views, std::span<const float> values);

  // Saves to the tensors "environment" and to the part "actors" of the document. REQUIRES: no step
  // is under way.
  void Save(checkpoint::CheckpointContent& content);
  void Restore(const checkpoint::LoadedCheckpoint& checkpoint);

 private:
  // Counts are in rounds. Workers write `played`, `failure` and the step; the caller writes the
  // rest.
  struct alignas(64) Progress {
    std::atomic<std::int64_t> played{0};
    std::int64_t begun = 0;
    std::exception_ptr failure;
    ActorStep last[2];  // [round % 2]
  };

  std::size_t Count(bool (Actors::*is)(std::size_t) const) const;
  int workers() const { return queue_.workers(); }
  void Prepare(std::size_t i);
  void Play(int i);
  int UnderWay() const;

  std::vector<Actor> actors_;
  std::vector<Progress> progress_;
  std::int64_t round_ = 0;
  std::vector<std::byte> own_buffer_;                 // [actor, observation]
  std::span<std::byte> buffer_;                       // own_buffer_, or the caller's
  std::vector<std::uint8_t> explores_;                // [actor]
  std::vector<std::vector<std::byte>> saved_states_;  // kept for Save: tensors are views
  TaskQueue queue_;                                   // last: it ends before the members it uses
};

}  // namespace uper
