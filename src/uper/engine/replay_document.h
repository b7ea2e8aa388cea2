#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/replay/replay_buffer.h"
#include "uper/replay/storage/mask_store.h"
#include "uper/replay/transition_record.h"
#include "uper/replay/transition_replay.h"

namespace uper {

// The part of a checkpoint that all kinds of replay memories share.

// The part "replay" of the document: the whole buffer except its raw priorities.
nlohmann::json ReplayDocument(const ReplayBufferState& buffer, std::uint64_t masks_position);
// The inverse of ReplayDocument(). Throws nlohmann::json::exception if something is missing.
ReplayBufferState ReplayBufferFrom(const nlohmann::json& document, std::vector<float> priorities);
std::uint64_t MasksPositionFrom(const nlohmann::json& document);

// Throws Error(kCorrupt) unless the stream holds exactly the records [first_id, next_id), at most
// `capacity` of them, of that size.
void CheckStream(const checkpoint::LoadedCheckpoint& checkpoint, const std::string& name,
                 std::uint64_t record_bytes, std::uint64_t first_id, std::uint64_t next_id,
                 std::uint64_t capacity);

// Appends a mask as MaskStore keeps it: its low bytes.
void AppendMask(std::uint64_t mask, std::size_t bytes, std::vector<std::uint8_t>& rows);

}  // namespace uper
