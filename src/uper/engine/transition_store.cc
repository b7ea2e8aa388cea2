#include "uper/engine/transition_store.h"

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"
#include "uper/engine/pending_observations.h"
#include "uper/engine/replay_document.h"
#include "uper/replay/selectors/proportional_selector.h"
#include "uper/replay/transition_record.h"

namespace uper {
namespace {

constexpr std::uint64_t kMaxPendingSteps = 1'000'000;

// `Pending` decides how observations are kept: WholePending or StackedPending.
template <typename Pending>
class StoreOf final : public TransitionStore {
 public:
  StoreOf(const TransitionStoreOptions& options, std::uint64_t seed)
      : options_(options),
        replay_(options.replay, Pending::MakeStorage(options), ReplayStreams(seed)),
        pending_(options),
        steps_(options.environments, NStepAccumulator<Observation>(options.n_steps)),
        up_to_date_(options.environments, 0),
        current_(options.environments * replay_.observation_bytes()) {}

  void Start(std::size_t environment, std::span<const std::byte> observation) override {
    CheckEnvironment(environment);
    pending_.Clear(environment);
    steps_[environment].Start(Push(environment, observation));
  }

  void Add(std::size_t environment, const StoredStep& step,
           std::span<const std::byte> observation) override {
    CheckEnvironment(environment);
    const Observation s_t = Push(environment, observation);
    for (const auto& transition : steps_[environment].Step(step.action, step.outcome, s_t)) {
      replay_.Add(transition);
    }
  }

  std::span<const std::byte> current() const override {
    if (const auto joined = pending_.Joined(); !joined.empty()) return joined;
    const std::size_t bytes = replay_.observation_bytes();
    for (std::size_t i = 0; i < up_to_date_.size(); ++i) {
      if (std::exchange(up_to_date_[i], 1) != 0) continue;
      pending_.WriteCurrent(i, replay_, std::span(current_).subspan(i * bytes, bytes));
    }
    return current_;
  }

  void StackSlots(std::size_t environment, const std::optional<NextFrame>& next,
                  std::span<std::uint32_t> slots) const override {
    CheckEnvironment(environment);
    if constexpr (kStacks) {
      pending_.Slots(environment, next, replay_, slots);
    } else {
      UPER_CHECK(false, "observations are stored whole");
    }
  }

  const ReplayBuffer& buffer() const override { return replay_.buffer(); }
  ReplayBuffer& mutable_buffer() override { return replay_.mutable_buffer(); }
  void Sample(const WeightOptions& options, const BatchView& out) override {
    replay_.Sample(options, out);
  }
  bool IsNoisy(std::uint64_t id) const override { return replay_.Fields(id).noisy != 0; }

  checkpoint::RecordStream Transitions() const override {
    return {.record_bytes = options_.RecordBytes(),
            .first_id = replay_.buffer().first_id(),
            .next_id = replay_.buffer().next_id(),
            .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
              ReadTransitions(begin, end, out);
            }};
  }
  checkpoint::RecordStream Frames() const override;

  void Save(checkpoint::CheckpointContent& content) const override;
  void Restore(const checkpoint::LoadedCheckpoint& checkpoint) override;
  void CheckValid() const override {
    replay_.CheckValid();
    for (const auto& steps : steps_) steps.CheckValid();
  }

 private:
  using Observation = typename Pending::Observation;
  using Replay = typename Pending::Replay;
  static constexpr bool kStacks = std::is_same_v<Pending, StackedPending>;

  void CheckEnvironment(std::size_t environment) const {
    UPER_CHECK(environment < steps_.size(), "no such environment");
  }
  Observation Push(std::size_t environment, std::span<const std::byte> observation) {
    up_to_date_[environment] = 0;
    return pending_.Push(environment, observation, replay_);
  }
  std::size_t observations_bytes() const { return options_.RecordBytes() - sizeof(RecordTail); }
  void ReadTransitions(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const;
  void RestoreTransitions(const checkpoint::LoadedCheckpoint& checkpoint,
                          typename Replay::State& state);
  void RestoreFrames(const checkpoint::LoadedCheckpoint& checkpoint, const nlohmann::json& document,
                     typename Replay::State& state);
  std::vector<std::byte> EncodePending() const;
  void RestorePending(std::span<const std::byte> bytes);
  void SaveSteps(std::size_t environment, ByteWriter& writer) const;
  void RestoreSteps(std::size_t environment, ByteReader& reader);

  const TransitionStoreOptions options_;
  Replay replay_;
  Pending pending_;
  std::vector<NStepAccumulator<Observation>> steps_;  // [environment]
  // The stacked observations of the agents; current() fills them.
  mutable std::vector<std::uint8_t> up_to_date_;  // [environment]: its part of current_
  mutable std::vector<std::byte> current_;        // [environment, observation]
  // Kept for Save: tensors are views.
  mutable SelectorState saved_selector_;
  mutable std::vector<std::byte> saved_pending_;
};

template <typename Pending>
void StoreOf<Pending>::ReadTransitions(std::uint64_t begin, std::uint64_t end,
                                       std::span<std::byte> out) const {
  const std::size_t record_bytes = options_.RecordBytes();
  for (std::uint64_t id = begin; id < end; ++id, out = out.subspan(record_bytes)) {
    const TransitionFields fields = replay_.Fields(id);
    const RecordTail tail{.a_tm1 = fields.a_tm1,
                          .r_t = fields.r_t,
                          .discount_t = fields.discount_t,
                          .noisy = fields.noisy,
                          .mask = replay_.masks().Get(id)};
    pending_.WriteRecord(replay_, id, out.first(observations_bytes()));
    std::memcpy(out.data() + observations_bytes(), &tail, sizeof(tail));
  }
}

template <typename Pending>
checkpoint::RecordStream StoreOf<Pending>::Frames() const {
  if constexpr (kStacks) {
    const FrameStore& frames = replay_.observations();
    return {.record_bytes = frames.frame_bytes(),
            .first_id = frames.first_frame(),
            .next_id = frames.next_frame(),
            .read = [&frames](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
              for (std::uint64_t frame = begin; frame < end; ++frame) {
                const auto pixels = frames.Frame(frame);
                std::memcpy(out.data(), pixels.data(), pixels.size());
                out = out.subspan(pixels.size());
              }
            }};
  } else {
    return {};
  }
}

template <typename Pending>
void StoreOf<Pending>::SaveSteps(std::size_t environment, ByteWriter& writer) const {
  const auto& state = steps_[environment].GetState();
  writer.Write<std::uint64_t>(state.observations.size());
  for (const Observation& observation : state.observations) {
    pending_.SaveObservation(observation, writer);
  }
  writer.Write<std::uint64_t>(state.actions.size());
  for (std::size_t i = 0; i < state.actions.size(); ++i) {
    writer.Write(state.actions[i]);
    writer.Write(state.rewards[i]);
    writer.Write(state.discounts[i]);
    writer.Write(state.noisy[i]);
  }
}

// Throws Error(kCorrupt) unless SaveSteps() wrote the bytes.
template <typename Pending>
void StoreOf<Pending>::RestoreSteps(std::size_t environment, ByteReader& reader) {
  typename NStepAccumulator<Observation>::State state;
  const auto observations = reader.ReadInRange<std::uint64_t>(0, options_.n_steps);
  for (std::uint64_t i = 0; i < observations; ++i) {
    state.observations.push_back(pending_.RestoreObservation(environment, reader, replay_));
  }
  const auto steps = reader.ReadInRange<std::uint64_t>(0, kMaxPendingSteps);
  for (std::uint64_t i = 0; i < steps; ++i) {
    state.actions.push_back(reader.Read<std::int32_t>());
    state.rewards.push_back(reader.Read<double>());
    state.discounts.push_back(reader.Read<double>());
    state.noisy.push_back(reader.Read<std::uint8_t>());
  }
  steps_[environment].SetState(std::move(state));
}

template <typename Pending>
std::vector<std::byte> StoreOf<Pending>::EncodePending() const {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    pending_.SaveCurrent(i, writer);
    SaveSteps(i, writer);
  }
  return bytes;
}

template <typename Pending>
void StoreOf<Pending>::RestorePending(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    pending_.RestoreCurrent(i, reader, replay_);
    RestoreSteps(i, reader);
    up_to_date_[i] = 0;
  }
  reader.ExpectEnd();
}

template <typename Pending>
void StoreOf<Pending>::Save(checkpoint::CheckpointContent& content) const {
  ReplayBufferState buffer = replay_.buffer().GetState();
  const std::uint64_t next = buffer.next_id;
  nlohmann::json document =
      ReplayDocument(buffer, replay_.masks().GetState(next, next).stream_position);
  if constexpr (kStacks) document["first_valid_id"] = replay_.observations().first_valid_id();
  content.document["replay"] = std::move(document);
  saved_selector_ = std::move(buffer.selector);
  saved_pending_ = EncodePending();
  content.tensors["replay"] = {
      {"priorities", checkpoint::AsTensor<float>(saved_selector_.priorities)},
      {"pending", checkpoint::AsTensor<std::byte>(saved_pending_)}};
  content.streams.merge(Streams());
}

template <typename Pending>
void StoreOf<Pending>::RestoreFrames(const checkpoint::LoadedCheckpoint& checkpoint,
                                     const nlohmann::json& document,
                                     typename Replay::State& state) {
  if constexpr (kStacks) {
    const checkpoint::ManifestStream& stream = checkpoint.Stream("frames");
    state.observations.next_frame = stream.next_id;
    state.observations.first_valid_id = document.at("first_valid_id");
    state.observations.next_id = state.buffer.next_id;
    state.observations.first_frame = stream.first_id;
    const FrameStore& frames = replay_.observations();
    CheckStream(checkpoint, "frames", frames.frame_bytes(), stream.first_id, stream.next_id,
                frames.frame_capacity());
    checkpoint.ReadStream(
        "frames", [&](std::uint64_t begin, std::uint64_t end, std::span<const std::byte> records) {
          const std::size_t bytes = (end - begin) * frames.frame_bytes();
          replay_.mutable_observations().RestoreFrames(
              begin, {reinterpret_cast<const std::uint8_t*>(records.data()), bytes});
        });
  }
}

template <typename Pending>
void StoreOf<Pending>::RestoreTransitions(const checkpoint::LoadedCheckpoint& checkpoint,
                                          typename Replay::State& state) {
  const std::size_t record_bytes = options_.RecordBytes();
  CheckStream(checkpoint, "transitions", record_bytes, state.buffer.first_id, state.buffer.next_id,
              replay_.buffer().capacity());
  checkpoint.ReadStream("transitions", [&](std::uint64_t begin, std::uint64_t end,
                                           std::span<const std::byte> records) {
    for (std::uint64_t id = begin; id < end; ++id) {
      const auto record = records.subspan((id - begin) * record_bytes, record_bytes);
      pending_.ReadRecord(replay_, id, record, state);
      RecordTail tail;
      std::memcpy(&tail, record.last(sizeof(tail)).data(), sizeof(tail));
      state.fields.push_back({.a_tm1 = tail.a_tm1,
                              .r_t = tail.r_t,
                              .discount_t = tail.discount_t,
                              .noisy = tail.noisy != 0 ? 1U : 0U});
      AppendMask(tail.mask, replay_.masks().bytes_per_mask(), state.masks.rows);
    }
  });
}

template <typename Pending>
void StoreOf<Pending>::Restore(const checkpoint::LoadedCheckpoint& checkpoint) {
  const checkpoint::TensorMap& tensors = checkpoint.Tensors("replay");
  const nlohmann::json& document = checkpoint.document.at("replay");
  typename Replay::State state;
  state.buffer = ReplayBufferFrom(document, checkpoint::TensorValues<float>(tensors, "priorities"));
  state.masks.first_id = state.buffer.first_id;
  state.masks.stream_position = MasksPositionFrom(document);
  state.observations.first_id = state.buffer.first_id;
  state.observations.already_loaded = true;
  RestoreFrames(checkpoint, document, state);
  RestoreTransitions(checkpoint, state);
  replay_.SetState(state);
  RestorePending(checkpoint::TensorValues<std::byte>(tensors, "pending"));
}

}  // namespace

FrameStoreOptions TransitionStoreOptions::FrameStore() const {
  FrameStoreOptions frames{.capacity = replay.buffer.capacity,
                           .frame_bytes = observation_bytes,
                           .stack_depth = frame_stack,
                           .frame_capacity = frame_capacity};
  if (frame_capacity == 0) {
    frames.frame_capacity = frames.ActualFrameCapacity() + environments * (n_steps + frame_stack);
  }
  return frames;
}

std::size_t TransitionStoreOptions::RecordBytes() const {
  const std::size_t observation =
      stacks_frames() ? frame_stack * sizeof(std::uint32_t) : observation_bytes;
  return 2 * observation + sizeof(RecordTail);
}

std::size_t TransitionStoreOptions::MemoryBytes() const {
  if (stacks_frames()) return FrameReplayMemoryBytes(replay, FrameStore());
  const std::size_t capacity = replay.buffer.capacity;
  return ProportionalSelector::MemoryBytes(capacity) +
         MaskStore::MemoryBytes(capacity, replay.masks) +
         capacity * (2 * observation_bytes + sizeof(TransitionFields));
}

std::map<std::string, checkpoint::RecordStream> TransitionStore::Streams() const {
  std::map<std::string, checkpoint::RecordStream> streams{{"transitions", Transitions()}};
  if (Frames().record_bytes > 0) streams["frames"] = Frames();
  return streams;
}

std::unique_ptr<TransitionStore> MakeTransitionStore(const TransitionStoreOptions& options,
                                                     std::uint64_t seed) {
  if (options.stacks_frames()) return std::make_unique<StoreOf<StackedPending>>(options, seed);
  return std::make_unique<StoreOf<WholePending>>(options, seed);
}

}  // namespace uper
