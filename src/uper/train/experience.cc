#include "uper/train/experience.h"

#include <algorithm>
#include <cstring>

#include "uper/base/byte_stream.h"
#include "uper/base/check.h"

namespace uper {
namespace {

// The fixed part of a record, behind the two observations.
struct RecordTail {
  std::int32_t a_tm1;
  float r_t;
  float discount_t;
  std::uint32_t noisy;
  std::uint64_t mask;
};
static_assert(sizeof(RecordTail) == 24, "records have no padding");

nlohmann::json CountersJson(const ReplayCounters& counters) {
  return {{"added", counters.added},
          {"evicted", counters.evicted},
          {"invalid_insertions", counters.invalid_insertions},
          {"drawn", counters.drawn},
          {"massless_draws", counters.massless_draws},
          {"updated", counters.updated},
          {"updates_of_evicted", counters.updates_of_evicted},
          {"invalid_updates", counters.invalid_updates}};
}

ReplayCounters CountersFrom(const nlohmann::json& json) {
  return {.added = json.at("added"),
          .evicted = json.at("evicted"),
          .invalid_insertions = json.at("invalid_insertions"),
          .drawn = json.at("drawn"),
          .massless_draws = json.at("massless_draws"),
          .updated = json.at("updated"),
          .updates_of_evicted = json.at("updates_of_evicted"),
          .invalid_updates = json.at("invalid_updates")};
}

// Masks as MaskStore keeps them: the low bytes.
void AppendMask(std::uint64_t mask, std::size_t bytes, std::vector<std::uint8_t>& rows) {
  for (std::size_t i = 0; i < bytes; ++i) {
    rows.push_back(static_cast<std::uint8_t>(mask >> (8 * i)));
  }
}

}  // namespace

RecordExperience::RecordExperience(const RecordExperienceOptions& options, std::uint64_t seed)
    : replay_(options.replay,
              RecordObservations(options.replay.buffer.capacity, options.observation_bytes),
              ReplayStreams(seed)),
      pending_(options.n_steps),
      current_(options.observation_bytes),
      noisy_(options.replay.buffer.capacity) {}

void RecordExperience::Start(std::span<const std::byte> observation) {
  std::copy(observation.begin(), observation.end(), current_.begin());
  pending_.Start(current_);
  pending_noisy_.clear();
}

void RecordExperience::Step(const ExperienceStep& step, std::span<const std::byte> observation) {
  std::copy(observation.begin(), observation.end(), current_.begin());
  pending_noisy_.push_back(step.noisy ? 1 : 0);
  // A transition counts as noisy when any of its steps was.
  for (const auto& transition : pending_.Step(step.action, step.outcome, current_)) {
    const bool noisy = std::any_of(pending_noisy_.begin(), pending_noisy_.end(),
                                   [](std::uint8_t flag) { return flag != 0; });
    noisy_[replay_.buffer().SlotOf(replay_.Add(transition))] = noisy ? 1 : 0;
    pending_noisy_.erase(pending_noisy_.begin());
  }
}

std::size_t RecordExperience::record_bytes() const {
  return 2 * current_.size() + sizeof(RecordTail);
}

void RecordExperience::ReadRecords(std::uint64_t begin, std::uint64_t end,
                                   std::span<std::byte> out) const {
  ReplayBatch row = replay_.MakeBatch(1);
  std::byte* to = out.data();
  for (std::uint64_t id = begin; id < end; ++id) {
    replay_.Gather(id, 0, row.view());
    const RecordTail tail{.a_tm1 = row.a_tm1[0],
                          .r_t = row.r_t[0],
                          .discount_t = row.discount_t[0],
                          .noisy = IsNoisy(id) ? 1U : 0U,
                          .mask = row.masks[0]};
    to = std::copy(row.s_tm1.begin(), row.s_tm1.end(), to);
    to = std::copy(row.s_t.begin(), row.s_t.end(), to);
    std::memcpy(to, &tail, sizeof(tail));
    to += sizeof(tail);
  }
}

std::vector<std::byte> RecordExperience::EncodePending() const {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  const Pending::State state = pending_.GetState();
  writer.WriteBlock(current_);
  writer.Write<std::uint64_t>(state.observations.size());
  for (const auto& observation : state.observations) writer.WriteBlock(observation);
  writer.Write<std::uint64_t>(state.actions.size());
  for (std::size_t i = 0; i < state.actions.size(); ++i) {
    writer.Write(state.actions[i]);
    writer.Write(state.rewards[i]);
    writer.Write(state.discounts[i]);
    writer.Write(pending_noisy_[i]);
  }
  return bytes;
}

void RecordExperience::RestorePending(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto observation = [&] {
    const auto block = reader.ReadBlock();
    if (block.size() != current_.size()) {
      throw Error(ErrorKind::kCorrupt, "a stored observation has another size");
    }
    return std::vector<std::byte>(block.begin(), block.end());
  };
  current_ = observation();
  Pending::State state;
  const auto observations = reader.ReadInRange<std::uint64_t>(0, 1'000'000);
  for (std::uint64_t i = 0; i < observations; ++i) state.observations.push_back(observation());
  const auto steps = reader.ReadInRange<std::uint64_t>(0, 1'000'000);
  pending_noisy_.clear();
  for (std::uint64_t i = 0; i < steps; ++i) {
    state.actions.push_back(reader.Read<std::int32_t>());
    state.rewards.push_back(reader.Read<double>());
    state.discounts.push_back(reader.Read<double>());
    pending_noisy_.push_back(reader.Read<std::uint8_t>());
  }
  reader.ExpectEnd();
  pending_.SetState(std::move(state));
}

void RecordExperience::Save(CheckpointContent& content) const {
  const ReplayBufferState buffer = replay_.buffer().GetState();
  saved_selector_ = buffer.selector;
  saved_pending_ = EncodePending();
  content.tensors["replay"] = {{"priorities", AsTensor<float>(saved_selector_.priorities)},
                               {"pending", AsTensor<std::byte>(saved_pending_)}};
  content.document["replay"] = {
      {"first_id", buffer.first_id},
      {"next_id", buffer.next_id},
      {"capacity", saved_selector_.capacity},
      {"first_slot", saved_selector_.first_slot},
      {"priority_exponent", saved_selector_.priority_exponent},
      {"largest_priority", buffer.largest_priority},
      {"draws_position", buffer.stream_position},
      {"masks_position", replay_.masks().GetState(buffer.next_id, buffer.next_id).stream_position},
      {"counters", CountersJson(buffer.counters)}};
  content.streams["transitions"] = {
      .record_bytes = record_bytes(),
      .first_id = buffer.first_id,
      .next_id = buffer.next_id,
      .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
        ReadRecords(begin, end, out);
      }};
}

void RecordExperience::Restore(const LoadedCheckpoint& checkpoint) {
  const TensorMap& tensors = checkpoint.Tensors("replay");
  const nlohmann::json& json = checkpoint.document.at("replay");
  RecordReplay::State state;
  state.buffer = {.first_id = json.at("first_id"),
                  .next_id = json.at("next_id"),
                  .selector = {.capacity = json.at("capacity"),
                               .first_slot = json.at("first_slot"),
                               .priorities = TensorValues<float>(tensors, "priorities"),
                               .priority_exponent = json.at("priority_exponent")},
                  .largest_priority = json.at("largest_priority"),
                  .stream_position = json.at("draws_position"),
                  .counters = CountersFrom(json.at("counters"))};
  state.masks = {
      .first_id = state.buffer.first_id, .rows = {}, .stream_position = json.at("masks_position")};
  state.observations.first_id = state.buffer.first_id;
  const std::size_t observations_bytes = 2 * current_.size();
  checkpoint.ReadStream("transitions", [&](std::uint64_t begin, std::uint64_t end,
                                           std::span<const std::byte> records) {
    for (std::uint64_t id = begin; id < end; ++id) {
      const auto record = records.subspan((id - begin) * record_bytes(), record_bytes());
      const auto pictures = record.first(observations_bytes);
      state.observations.rows.insert(state.observations.rows.end(), pictures.begin(),
                                     pictures.end());
      RecordTail tail;
      std::memcpy(&tail, record.data() + observations_bytes, sizeof(tail));
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
