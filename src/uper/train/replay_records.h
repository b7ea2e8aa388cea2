#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "uper/replay/mask_store.h"
#include "uper/replay/replay_buffer.h"
#include "uper/replay/transition_replay.h"
#include "uper/train/checkpoint_reader.h"

namespace uper {

// What the checkpoints of all kinds of replay memories have in common.

// The end of a transition's record, behind what names its observations.
struct RecordTail {
  std::int32_t a_tm1 = 0;
  float r_t = 0;
  float discount_t = 0;
  std::uint32_t noisy = 0;
  std::uint64_t mask = 0;

  StepColumns columns() const { return {.a_tm1 = a_tm1, .r_t = r_t, .discount_t = discount_t}; }
};
static_assert(sizeof(RecordTail) == 24, "records have no padding");

// The part "replay" of the document: all of the buffer but its raw priorities.
nlohmann::json ReplayDocument(const ReplayBufferState& buffer, std::uint64_t masks_position);
// And back. Throws nlohmann::json::exception if something is missing.
ReplayBufferState ReplayBufferFrom(const nlohmann::json& document, std::vector<float> priorities);
std::uint64_t MasksPositionFrom(const nlohmann::json& document);

// Throws Error(kCorrupt) unless the stream holds exactly the records [first_id, next_id), at most
// `capacity` of them, of that size.
void CheckStream(const LoadedCheckpoint& checkpoint, const std::string& name,
                 std::uint64_t record_bytes, std::uint64_t first_id, std::uint64_t next_id,
                 std::uint64_t capacity);

// Appends a mask as MaskStore keeps it: its low bytes.
void AppendMask(std::uint64_t mask, std::size_t bytes, std::vector<std::uint8_t>& rows);

}  // namespace uper
