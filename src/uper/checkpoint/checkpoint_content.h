#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "uper/checkpoint/safetensors.h"

namespace uper::checkpoint {

// The content of a checkpoint. The store does not depend on agents: it saves numbers, a document
// and streams of records, and returns them unchanged.

// Records of equal size that are numbered from 0 and never change once written: the transitions of
// a replay memory by id, or its frames by frame id. The live ones are [first_id, next_id).
struct RecordStream {
  std::uint64_t record_bytes = 0;
  std::uint64_t first_id = 0;
  std::uint64_t next_id = 0;
  // Writes the records [begin, end), all of them live, into (end - begin) * record_bytes bytes.
  std::function<void(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out)> read;
};

struct CheckpointContent {
  // Small facts for `inspect`, kept in the manifest: frames, updates, hashes.
  nlohmann::json info = nlohmann::json::object();
  // Counters, random positions, log positions: everything that is not an array of numbers. Valid
  // UTF-8 and finite numbers only (JSON has no others); bytes go into a tensor of kUint8.
  nlohmann::json document = nlohmann::json::object();
  // One file each: "parameters", "optimizer", "replay". Names consist of a-z and _.
  std::map<std::string, TensorMap> tensors;
  // "transitions", "frames". Names consist of a-z and _.
  std::map<std::string, RecordStream> streams;
  // Makes durable what the document refers to outside the folder (logs). Called before the
  // checkpoint is published. Returns a problem, or "". May run later on another thread. May be
  // empty.
  std::function<std::string()> sync_outside;
};

}  // namespace uper::checkpoint
