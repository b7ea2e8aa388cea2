#include "uper/engine/frame_experience.h"

#include <algorithm>
#include <cstring>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"
#include "uper/engine/replay_records.h"

namespace uper {
namespace {

std::span<const std::uint8_t> PixelsOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

FrameStoreOptions FrameExperienceOptions::FrameStore() const {
  FrameStoreOptions options{.capacity = replay.buffer.capacity,
                            .frame_bytes = frame_bytes,
                            .stack_depth = stack_depth,
                            .frame_capacity = frame_capacity};
  if (frame_capacity == 0) {
    options.frame_capacity = options.ActualFrameCapacity() + environments * (n_steps + stack_depth);
  }
  return options;
}

FrameExperience::FrameExperience(const FrameExperienceOptions& options, std::uint64_t seed)
    : depth_(options.stack_depth),
      replay_(options.replay, FrameStore(options.FrameStore()), ReplayStreams(seed)),
      players_(options.environments,
               {FrameStack(options.stack_depth), PendingSteps<FrameStack>(options.n_steps), false}),
      current_(options.environments * replay_.observation_bytes()),
      noisy_(options.replay.buffer.capacity) {}

std::size_t FrameExperience::MemoryBytes(const FrameExperienceOptions& options) {
  return FrameReplayMemoryBytes(options.replay, options.FrameStore()) +
         options.replay.buffer.capacity * sizeof(std::uint8_t);
}

std::size_t FrameExperience::RecordBytes(const FrameExperienceOptions& options) {
  return 2 * options.stack_depth * sizeof(std::uint32_t) + sizeof(RecordTail);
}

FrameExperience::Player& FrameExperience::PlayerOf(std::size_t environment) {
  UPER_CHECK(environment < players_.size(), "no such environment");
  return players_[environment];
}

void FrameExperience::Start(std::size_t environment, std::span<const std::byte> frame) {
  Player& player = PlayerOf(environment);
  player.stack.Clear();
  PushFrame(environment, frame);
  player.pending.Start(player.stack);
}

void FrameExperience::Step(std::size_t environment, const ExperienceStep& step,
                           std::span<const std::byte> frame) {
  Player& player = PlayerOf(environment);
  PushFrame(environment, frame);
  player.pending.Step(step, player.stack,
                      [this](const Transition<FrameStack>& transition, bool noisy) {
                        const std::uint64_t id = replay_.Add(transition);
                        noisy_[replay_.buffer().SlotOf(id)] = noisy ? 1 : 0;
                      });
}

void FrameExperience::PushFrame(std::size_t environment, std::span<const std::byte> frame) {
  players_[environment].stack.Push(replay_.AddFrame(PixelsOf(frame)));
  players_[environment].shown = false;
}

std::span<const std::byte> FrameExperience::current() const {
  for (std::size_t i = 0; i < players_.size(); ++i) {
    if (!players_[i].shown) ShowStack(i);
  }
  return current_;
}

void FrameExperience::Slots(std::size_t environment, const std::optional<NextFrame>& next,
                            std::span<std::uint32_t> slots) const {
  UPER_CHECK(environment < players_.size() && slots.size() == depth_, "one stack an environment");
  FrameStack stack = players_[environment].stack;
  if (next) {
    if (next->starts) stack.Clear();
    stack.Push(next->id);
  }
  const std::size_t capacity = replay_.observations().frame_capacity();
  std::transform(stack.frames().begin(), stack.frames().end(), slots.begin(), [&](auto frame) {
    return frame == kZeroFrame ? FrameStore::kZeroSlot
                               : static_cast<std::uint32_t>(frame % capacity);
  });
}

// Writes the pixels of an environment's stack into what the agent sees.
void FrameExperience::ShowStack(std::size_t environment) const {
  players_[environment].shown = true;
  const std::size_t frame_bytes = replay_.observations().frame_bytes();
  std::byte* to = current_.data() + environment * replay_.observation_bytes();
  for (const std::uint64_t frame : players_[environment].stack.frames()) {
    if (frame == kZeroFrame) {
      std::memset(to, 0, frame_bytes);
    } else {
      std::memcpy(to, replay_.observations().Frame(frame).data(), frame_bytes);
    }
    to += frame_bytes;
  }
}

std::size_t FrameExperience::record_bytes() const { return slots_bytes() + sizeof(RecordTail); }

void FrameExperience::ReadTransitions(std::uint64_t begin, std::uint64_t end,
                                      std::span<std::byte> out) const {
  std::byte* to = out.data();
  for (std::uint64_t id = begin; id < end; ++id) {
    const TransitionFields columns = replay_.Columns(id);
    const RecordTail tail{.a_tm1 = columns.a_tm1,
                          .r_t = columns.r_t,
                          .discount_t = columns.discount_t,
                          .noisy = IsNoisy(id) ? 1U : 0U,
                          .mask = replay_.masks().Get(id)};
    std::memcpy(to, replay_.observations().StackSlots(id).data(), slots_bytes());
    std::memcpy(to + slots_bytes(), &tail, sizeof(tail));
    to += record_bytes();
  }
}

void FrameExperience::ReadFrames(std::uint64_t begin, std::uint64_t end,
                                 std::span<std::byte> out) const {
  std::byte* to = out.data();
  for (std::uint64_t frame = begin; frame < end; ++frame) {
    const std::span<const std::uint8_t> pixels = replay_.observations().Frame(frame);
    std::memcpy(to, pixels.data(), pixels.size());
    to += pixels.size();
  }
}

RecordStream FrameExperience::Transitions() const {
  return {.record_bytes = record_bytes(),
          .first_id = replay_.buffer().first_id(),
          .next_id = replay_.buffer().next_id(),
          .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
            ReadTransitions(begin, end, out);
          }};
}

RecordStream FrameExperience::Frames() const {
  return {.record_bytes = replay_.observations().frame_bytes(),
          .first_id = replay_.observations().first_frame(),
          .next_id = replay_.observations().next_frame(),
          .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
            ReadFrames(begin, end, out);
          }};
}

std::vector<std::byte> FrameExperience::EncodePlayers() const {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  const auto write = [&](const FrameStack& stack) {
    for (const std::uint64_t frame : stack.frames()) writer.Write(frame);
  };
  for (const Player& player : players_) {
    write(player.stack);
    player.pending.Save(writer, write);
  }
  return bytes;
}

FrameStack FrameExperience::ReadStack(ByteReader& reader) const {
  FrameStack stack(depth_);
  bool padding = false;
  for (std::size_t i = 0; i < depth_; ++i) {
    const auto frame = reader.Read<std::uint64_t>();
    const FrameStore& frames = replay_.observations();
    padding = padding || frame == kZeroFrame;
    const bool stored = frame >= frames.first_frame() && frame < frames.next_frame();
    if (padding ? frame != kZeroFrame : !stored) {
      throw Error(ErrorKind::kCorrupt, "a stored stack names a frame that is not there");
    }
    if (!padding) stack.Push(frame);
  }
  return stack;
}

void FrameExperience::RestorePlayers(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  for (std::size_t i = 0; i < players_.size(); ++i) {
    players_[i].stack = ReadStack(reader);
    players_[i].pending.Restore(reader, [&] { return ReadStack(reader); });
    players_[i].shown = false;
  }
  reader.ExpectEnd();
}

void FrameExperience::Save(CheckpointContent& content) const {
  ReplayBufferState buffer = replay_.buffer().GetState();
  const std::uint64_t next = buffer.next_id;
  nlohmann::json document =
      ReplayDocument(buffer, replay_.masks().GetState(next, next).stream_position);
  document["first_valid_id"] = replay_.observations().first_valid_id();
  content.document["replay"] = std::move(document);
  saved_selector_ = std::move(buffer.selector);
  saved_players_ = EncodePlayers();
  content.tensors["replay"] = {{"priorities", AsTensor<float>(saved_selector_.priorities)},
                               {"pending", AsTensor<std::byte>(saved_players_)}};
  content.streams.merge(Streams());
}

void FrameExperience::RestoreFrames(const LoadedCheckpoint& checkpoint,
                                    const FrameStoreState& state) {
  const FrameStore& frames = replay_.observations();
  CheckStream(checkpoint, "frames", frames.frame_bytes(), state.first_frame, state.next_frame,
              frames.frame_capacity());
  checkpoint.ReadStream(
      "frames", [&](std::uint64_t begin, std::uint64_t end, std::span<const std::byte> records) {
        replay_.mutable_observations().RestoreFrames(
            begin, PixelsOf(records.first((end - begin) * frames.frame_bytes())));
      });
}

void FrameExperience::RestoreTransitions(const LoadedCheckpoint& checkpoint,
                                         FrameReplay::State& state) {
  CheckStream(checkpoint, "transitions", record_bytes(), state.buffer.first_id,
              state.buffer.next_id, replay_.buffer().capacity());
  checkpoint.ReadStream("transitions", [&](std::uint64_t begin, std::uint64_t end,
                                           std::span<const std::byte> records) {
    for (std::uint64_t id = begin; id < end; ++id) {
      const auto record = records.subspan((id - begin) * record_bytes(), record_bytes());
      std::array<std::uint32_t, 2 * FrameStack::kMaxDepth> slots;
      std::memcpy(slots.data(), record.data(), slots_bytes());
      RecordTail tail;
      std::memcpy(&tail, record.data() + slots_bytes(), sizeof(tail));
      state.observations.stacks.insert(state.observations.stacks.end(), slots.begin(),
                                       slots.begin() + static_cast<std::ptrdiff_t>(2 * depth_));
      state.columns.push_back(
          {.a_tm1 = tail.a_tm1, .r_t = tail.r_t, .discount_t = tail.discount_t});
      AppendMask(tail.mask, replay_.masks().bytes_per_mask(), state.masks.rows);
      noisy_[replay_.buffer().SlotOf(id)] = tail.noisy != 0 ? 1 : 0;
    }
  });
}

void FrameExperience::Restore(const LoadedCheckpoint& checkpoint) {
  const TensorMap& tensors = checkpoint.Tensors("replay");
  const nlohmann::json& document = checkpoint.document.at("replay");
  FrameReplay::State state;
  state.buffer = ReplayBufferFrom(document, TensorValues<float>(tensors, "priorities"));
  state.masks.first_id = state.buffer.first_id;
  state.masks.stream_position = MasksPositionFrom(document);
  const ManifestStream& frames = checkpoint.Stream("frames");
  state.observations = {.next_frame = frames.next_id,
                        .first_valid_id = document.at("first_valid_id"),
                        .next_id = state.buffer.next_id,
                        .first_frame = frames.first_id,
                        .already_loaded = true,
                        .first_id = state.buffer.first_id};
  RestoreFrames(checkpoint, state.observations);
  RestoreTransitions(checkpoint, state);
  replay_.SetState(state);
  RestorePlayers(TensorValues<std::byte>(tensors, "pending"));
}

}  // namespace uper
