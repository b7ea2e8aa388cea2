#include "uper/engine/record_experience.h"

#include <algorithm>
#include <cstring>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"
#include "uper/engine/replay_records.h"
#include "uper/replay/selectors/proportional_selector.h"

namespace uper {

RecordExperience::RecordExperience(const RecordExperienceOptions& options, std::uint64_t seed)
    : observation_bytes_(options.observation_bytes),
      replay_(options.replay,
              WholeObservations(options.replay.buffer.capacity, options.observation_bytes),
              ReplayStreams(seed)),
      pending_(options.environments, PendingSteps<Observation>(options.n_steps)),
      current_(options.environments * options.observation_bytes),
      noisy_(options.replay.buffer.capacity) {}

std::size_t RecordExperience::MemoryBytes(const RecordExperienceOptions& options) {
  const std::size_t capacity = options.replay.buffer.capacity;
  return ProportionalSelector::MemoryBytes(capacity) +
         MaskStore::MemoryBytes(capacity, options.replay.masks) +
         capacity *
             (2 * options.observation_bytes + sizeof(TransitionFields) + sizeof(std::uint8_t));
}

std::size_t RecordExperience::RecordBytes(const RecordExperienceOptions& options) {
  return 2 * options.observation_bytes + sizeof(RecordTail);
}

std::span<std::byte> RecordExperience::SeenBy(std::size_t environment) {
  UPER_CHECK(environment < pending_.size(), "no such environment");
  return std::span(current_).subspan(environment * observation_bytes_, observation_bytes_);
}

void RecordExperience::Start(std::size_t environment, std::span<const std::byte> observation) {
  std::copy(observation.begin(), observation.end(), SeenBy(environment).begin());
  pending_[environment].Start({observation.begin(), observation.end()});
}

void RecordExperience::Step(std::size_t environment, const ExperienceStep& step,
                            std::span<const std::byte> observation) {
  std::copy(observation.begin(), observation.end(), SeenBy(environment).begin());
  pending_[environment].Step(step, {observation.begin(), observation.end()},
                             [this](const Transition<Observation>& transition, bool noisy) {
                               noisy_[replay_.buffer().SlotOf(replay_.Add(transition))] =
                                   noisy ? 1 : 0;
                             });
}

std::size_t RecordExperience::record_bytes() const {
  return 2 * observation_bytes_ + sizeof(RecordTail);
}

void RecordExperience::ReadRecords(std::uint64_t begin, std::uint64_t end,
                                   std::span<std::byte> out) const {
  for (std::uint64_t id = begin; id < end; ++id, out = out.subspan(record_bytes())) {
    const TransitionFields columns = replay_.Columns(id);
    const RecordTail tail{.a_tm1 = columns.a_tm1,
                          .r_t = columns.r_t,
                          .discount_t = columns.discount_t,
                          .noisy = IsNoisy(id) ? 1U : 0U,
                          .mask = replay_.masks().Get(id)};
    replay_.observations().Gather(id, out.first(observation_bytes_),
                                  out.subspan(observation_bytes_, observation_bytes_));
    std::memcpy(out.data() + 2 * observation_bytes_, &tail, sizeof(tail));
  }
}

std::vector<std::byte> RecordExperience::EncodePending() const {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    writer.WriteBlock(std::span(current_).subspan(i * observation_bytes_, observation_bytes_));
    pending_[i].Save(writer,
                     [&](const Observation& observation) { writer.WriteBlock(observation); });
  }
  return bytes;
}

void RecordExperience::RestorePending(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto read = [&] {
    const auto block = reader.ReadBlock();
    if (block.size() != observation_bytes_) {
      throw Error(ErrorKind::kCorrupt, "a stored observation has another size");
    }
    return Observation(block.begin(), block.end());
  };
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Observation seen = read();
    std::copy(seen.begin(), seen.end(), SeenBy(i).begin());
    pending_[i].Restore(reader, read);
  }
  reader.ExpectEnd();
}

RecordStream RecordExperience::Transitions() const {
  return {.record_bytes = record_bytes(),
          .first_id = replay_.buffer().first_id(),
          .next_id = replay_.buffer().next_id(),
          .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
            ReadRecords(begin, end, out);
          }};
}

void RecordExperience::Slots(std::size_t, const std::optional<NextFrame>&,
                             std::span<std::uint32_t>) const {
  UPER_CHECK(false, "observations are stored whole");
}

void RecordExperience::Save(CheckpointContent& content) const {
  ReplayBufferState buffer = replay_.buffer().GetState();
  const std::uint64_t next = buffer.next_id;
  content.document["replay"] =
      ReplayDocument(buffer, replay_.masks().GetState(next, next).stream_position);
  saved_selector_ = std::move(buffer.selector);
  saved_pending_ = EncodePending();
  content.tensors["replay"] = {{"priorities", AsTensor<float>(saved_selector_.priorities)},
                               {"pending", AsTensor<std::byte>(saved_pending_)}};
  content.streams.merge(Streams());
}

void RecordExperience::Restore(const LoadedCheckpoint& checkpoint) {
  const TensorMap& tensors = checkpoint.Tensors("replay");
  const nlohmann::json& document = checkpoint.document.at("replay");
  WholeReplay::State state;
  state.buffer = ReplayBufferFrom(document, TensorValues<float>(tensors, "priorities"));
  state.masks.first_id = state.buffer.first_id;
  state.masks.stream_position = MasksPositionFrom(document);
  state.observations.first_id = state.buffer.first_id;
  state.observations.already_loaded = true;
  CheckStream(checkpoint, "transitions", record_bytes(), state.buffer.first_id,
              state.buffer.next_id, replay_.buffer().capacity());
  checkpoint.ReadStream("transitions", [&](std::uint64_t begin, std::uint64_t end,
                                           std::span<const std::byte> records) {
    for (std::uint64_t id = begin; id < end; ++id) {
      const auto record = records.subspan((id - begin) * record_bytes(), record_bytes());
      replay_.mutable_observations().RestoreRows(id, record.first(2 * observation_bytes_));
      RecordTail tail;
      std::memcpy(&tail, record.last(sizeof(tail)).data(), sizeof(tail));
      state.columns.push_back(
          {.a_tm1 = tail.a_tm1, .r_t = tail.r_t, .discount_t = tail.discount_t});
      AppendMask(tail.mask, replay_.masks().bytes_per_mask(), state.masks.rows);
      noisy_[replay_.buffer().SlotOf(id)] = tail.noisy != 0 ? 1 : 0;
    }
  });
  replay_.SetState(state);
  RestorePending(TensorValues<std::byte>(tensors, "pending"));
}

}  // namespace uper
