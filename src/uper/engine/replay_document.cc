#include "uper/engine/replay_document.h"

#include <utility>

namespace uper {
namespace {

nlohmann::json CountersJson(const ReplayCounters& counters) {
  return {{"added", counters.added},
          {"evicted", counters.evicted},
          {"invalid_insertions", counters.invalid_insertions},
          {"drawn", counters.drawn},
          {"massless_draws", counters.uniform_fallbacks},
          {"updated", counters.updated},
          {"updates_of_evicted", counters.updates_of_evicted},
          {"invalid_updates", counters.invalid_updates}};
}

ReplayCounters CountersFrom(const nlohmann::json& json) {
  return {.added = json.at("added"),
          .evicted = json.at("evicted"),
          .invalid_insertions = json.at("invalid_insertions"),
          .drawn = json.at("drawn"),
          .uniform_fallbacks = json.at("massless_draws"),
          .updated = json.at("updated"),
          .updates_of_evicted = json.at("updates_of_evicted"),
          .invalid_updates = json.at("invalid_updates")};
}

}  // namespace

nlohmann::json ReplayDocument(const ReplayBufferState& buffer, std::uint64_t masks_position) {
  return {{"first_id", buffer.first_id},
          {"next_id", buffer.next_id},
          {"capacity", buffer.selector.capacity},
          {"first_slot", buffer.selector.first_slot},
          {"priority_exponent", buffer.selector.priority_exponent},
          {"largest_priority", buffer.largest_priority},
          {"draws_position", buffer.stream_position},
          {"masks_position", masks_position},
          {"counters", CountersJson(buffer.counters)}};
}

ReplayBufferState ReplayBufferFrom(const nlohmann::json& document, std::vector<float> priorities) {
  return {.first_id = document.at("first_id"),
          .next_id = document.at("next_id"),
          .selector = {.capacity = document.at("capacity"),
                       .first_slot = document.at("first_slot"),
                       .priorities = std::move(priorities),
                       .priority_exponent = document.at("priority_exponent")},
          .largest_priority = document.at("largest_priority"),
          .stream_position = document.at("draws_position"),
          .counters = CountersFrom(document.at("counters"))};
}

std::uint64_t MasksPositionFrom(const nlohmann::json& document) {
  return document.at("masks_position");
}

void CheckStream(const checkpoint::LoadedCheckpoint& checkpoint, const std::string& name,
                 std::uint64_t record_bytes, std::uint64_t first_id, std::uint64_t next_id,
                 std::uint64_t capacity) {
  const checkpoint::ManifestStream& stream = checkpoint.Stream(name);
  if (stream.record_bytes != record_bytes || stream.first_id != first_id ||
      stream.next_id != next_id || next_id - first_id > capacity) {
    throw Error(ErrorKind::kCorrupt,
                "the stored " + name + " are not those of this run's replay memory");
  }
}

void AppendMask(std::uint64_t mask, std::size_t bytes, std::vector<std::uint8_t>& rows) {
  for (std::size_t i = 0; i < bytes; ++i) {
    rows.push_back(static_cast<std::uint8_t>(mask >> (8 * i)));
  }
}

}  // namespace uper
