#include "uper/engine/pending_observations.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "uper/base/check.h"

namespace uper {

WholePending::WholePending(const TransitionStoreOptions& options)
    : bytes_(options.observation_bytes),
      places_(options.n_steps + 1),
      newest_(options.environments, 0),
      memory_(options.environments * places_ * bytes_) {}

WholeObservations WholePending::MakeStorage(const TransitionStoreOptions& options) {
  return {options.replay.buffer.capacity, options.observation_bytes};
}

std::span<std::byte> WholePending::Place(std::size_t environment, std::size_t place) const {
  return std::span(memory_).subspan((environment * places_ + place) * bytes_, bytes_);
}

std::span<const std::byte> WholePending::Newest(std::size_t environment) const {
  return Place(environment, newest_[environment]);
}

WholePending::Observation WholePending::Push(std::size_t environment,
                                             std::span<const std::byte> bytes, Replay&) {
  UPER_CHECK(bytes.size() == bytes_, "an observation of another size");
  newest_[environment] = (newest_[environment] + 1) % places_;
  const std::span<std::byte> place = Place(environment, newest_[environment]);
  std::memcpy(place.data(), bytes.data(), bytes_);
  return place;
}

std::span<const std::byte> WholePending::Joined() const {
  return newest_.size() == 1 ? Newest(0) : std::span<const std::byte>();
}

void WholePending::WriteCurrent(std::size_t environment, const Replay&,
                                std::span<std::byte> out) const {
  std::memcpy(out.data(), Newest(environment).data(), bytes_);
}

void WholePending::WriteRecord(const Replay& replay, std::uint64_t id,
                               std::span<std::byte> out) const {
  replay.observations().Gather(id, out.first(bytes_), out.subspan(bytes_, bytes_));
}

void WholePending::ReadRecord(Replay& replay, std::uint64_t id, std::span<const std::byte> record,
                              Replay::State&) const {
  replay.mutable_observations().RestoreRows(id, record.first(2 * bytes_));
}

void WholePending::SaveCurrent(std::size_t environment, ByteWriter& writer) const {
  writer.WriteBlock(Newest(environment));
}

void WholePending::RestoreCurrent(std::size_t environment, ByteReader& reader, Replay& replay) {
  RestoreObservation(environment, reader, replay);
}

void WholePending::SaveObservation(const Observation& observation, ByteWriter& writer) const {
  writer.WriteBlock(observation);
}

WholePending::Observation WholePending::RestoreObservation(std::size_t environment,
                                                           ByteReader& reader, Replay& replay) {
  const auto block = reader.ReadBlock();
  if (block.size() != bytes_) {
    throw Error(ErrorKind::kCorrupt, "a stored observation has another size");
  }
  return Push(environment, block, replay);
}

StackedPending::StackedPending(const TransitionStoreOptions& options)
    : stacks_(options.environments, FrameStack(options.frame_stack)) {}

FrameStore StackedPending::MakeStorage(const TransitionStoreOptions& options) {
  return FrameStore(options.FrameStore());
}

StackedPending::Observation StackedPending::Push(std::size_t environment,
                                                 std::span<const std::byte> frame, Replay& replay) {
  const std::span pixels(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size());
  stacks_[environment].Push(replay.AddFrame(pixels));
  return stacks_[environment];
}

// Writes the pixels of an environment's stack.
void StackedPending::WriteCurrent(std::size_t environment, const Replay& replay,
                                  std::span<std::byte> out) const {
  const std::size_t frame_bytes = replay.observations().frame_bytes();
  for (const std::uint64_t frame : stacks_[environment].frames()) {
    if (frame == kZeroFrame) {
      std::memset(out.data(), 0, frame_bytes);
    } else {
      std::memcpy(out.data(), replay.observations().Frame(frame).data(), frame_bytes);
    }
    out = out.subspan(frame_bytes);
  }
}

void StackedPending::Slots(std::size_t environment, const std::optional<NextFrame>& next,
                           const Replay& replay, std::span<std::uint32_t> slots) const {
  FrameStack stack = stacks_[environment];
  if (next) {
    if (next->starts_episode) stack.Clear();
    stack.Push(next->id);
  }
  UPER_CHECK(slots.size() == stack.frames().size(), "one slot per frame");
  std::transform(stack.frames().begin(), stack.frames().end(), slots.begin(),
                 [&](std::uint64_t frame) { return replay.observations().SlotOf(frame); });
}

void StackedPending::WriteRecord(const Replay& replay, std::uint64_t id,
                                 std::span<std::byte> out) const {
  const auto slots = replay.observations().StackSlots(id);
  std::memcpy(out.data(), slots.data(), slots.size_bytes());
}

void StackedPending::ReadRecord(Replay&, std::uint64_t, std::span<const std::byte> record,
                                Replay::State& state) const {
  std::array<std::uint32_t, 2 * FrameStack::kMaxDepth> slots;
  const std::size_t count = 2 * stacks_.front().frames().size();
  std::memcpy(slots.data(), record.data(), count * sizeof(std::uint32_t));
  state.observations.stacks.insert(state.observations.stacks.end(), slots.begin(),
                                   slots.begin() + static_cast<std::ptrdiff_t>(count));
}

void StackedPending::SaveCurrent(std::size_t environment, ByteWriter& writer) const {
  SaveObservation(stacks_[environment], writer);
}

void StackedPending::RestoreCurrent(std::size_t environment, ByteReader& reader, Replay& replay) {
  stacks_[environment] = RestoreObservation(environment, reader, replay);
}

void StackedPending::SaveObservation(const Observation& observation, ByteWriter& writer) const {
  for (const std::uint64_t frame : observation.frames()) writer.Write(frame);
}

StackedPending::Observation StackedPending::RestoreObservation(std::size_t environment,
                                                               ByteReader& reader, Replay& replay) {
  const FrameStore& frames = replay.observations();
  const std::size_t depth = stacks_[environment].frames().size();
  FrameStack stack(depth);
  bool padding = false;
  for (std::size_t i = 0; i < depth; ++i) {
    const auto frame = reader.Read<std::uint64_t>();
    padding = padding || frame == kZeroFrame;
    const bool stored = frame >= frames.first_frame() && frame < frames.next_frame();
    if (padding ? frame != kZeroFrame : !stored) {
      throw Error(ErrorKind::kCorrupt, "a stored stack names a frame that is not there");
    }
    if (!padding) stack.Push(frame);
  }
  return stack;
}

}  // namespace uper
