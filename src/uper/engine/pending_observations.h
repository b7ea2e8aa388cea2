#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "uper/base/files/byte_stream.h"
#include "uper/engine/transition_store.h"
#include "uper/replay/transition_replay.h"

namespace uper {

// The newest observations of each environment. Agents see the newest one, and pending n-step
// transitions refer to the others. There is one class for observations stored whole and one for
// stacks of frames. The store (transition_store.cc) uses one of them. Not thread-safe.

class WholePending {
 public:
  using Replay = WholeReplay;
  using Observation = WholeObservations::Observation;

  explicit WholePending(const TransitionStoreOptions& options);

  static WholeObservations MakeStorage(const TransitionStoreOptions& options);

  void Clear(std::size_t /*environment*/) {}
  // Keeps an observation for n further steps of the environment.
  Observation Push(std::size_t environment, std::span<const std::byte> bytes, Replay& replay);

  // All environments' newest observations side by side, without a copy if that is possible.
  std::span<const std::byte> Joined() const;
  void WriteCurrent(std::size_t environment, const Replay& replay, std::span<std::byte> out) const;

  // The observations in a transition's record.
  void WriteRecord(const Replay& replay, std::uint64_t id, std::span<std::byte> out) const;
  void ReadRecord(Replay& replay, std::uint64_t id, std::span<const std::byte> record,
                  Replay::State& state) const;

  void SaveCurrent(std::size_t environment, ByteWriter& writer) const;
  void RestoreCurrent(std::size_t environment, ByteReader& reader, Replay& replay);
  void SaveObservation(const Observation& observation, ByteWriter& writer) const;
  Observation RestoreObservation(std::size_t environment, ByteReader& reader, Replay& replay);

 private:
  std::span<std::byte> Place(std::size_t environment, std::size_t place) const;
  std::span<const std::byte> Newest(std::size_t environment) const;

  std::size_t bytes_;                      // of an observation
  std::size_t places_;                     // per environment: one more than steps
  std::vector<std::size_t> newest_;        // [environment]: place of its newest observation
  mutable std::vector<std::byte> memory_;  // [environment, place, byte]
};

class StackedPending {
 public:
  using Replay = FrameReplay;
  using Observation = FrameStack;

  explicit StackedPending(const TransitionStoreOptions& options);

  static FrameStore MakeStorage(const TransitionStoreOptions& options);

  void Clear(std::size_t environment) { stacks_[environment].Clear(); }
  Observation Push(std::size_t environment, std::span<const std::byte> frame, Replay& replay);

  std::span<const std::byte> Joined() const { return {}; }
  void WriteCurrent(std::size_t environment, const Replay& replay, std::span<std::byte> out) const;
  void Slots(std::size_t environment, const std::optional<NextFrame>& next, const Replay& replay,
             std::span<std::uint32_t> slots) const;

  void WriteRecord(const Replay& replay, std::uint64_t id, std::span<std::byte> out) const;
  void ReadRecord(Replay& replay, std::uint64_t id, std::span<const std::byte> record,
                  Replay::State& state) const;

  void SaveCurrent(std::size_t environment, ByteWriter& writer) const;
  void RestoreCurrent(std::size_t environment, ByteReader& reader, Replay& replay);
  void SaveObservation(const Observation& observation, ByteWriter& writer) const;
  Observation RestoreObservation(std::size_t environment, ByteReader& reader, Replay& replay);

 private:
  std::vector<FrameStack> stacks_;  // [environment]
};

}  // namespace uper
