#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "uper/checkpoint/checkpoint_store.h"
#include "uper/checkpoint/checkpoint_verify.h"
#include "uper/checkpoint/checksum.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

// Adds all tensors of a file in the order of their names.
void AddTensors(const checkpoint::TensorMap& tensors, checkpoint::Checksummer& checksum) {
  for (const auto& [name, tensor] : tensors) {
    checksum.Add(std::as_bytes(std::span(name)));
    checksum.Add(tensor.bytes);
  }
}

std::string ParametersHash(const checkpoint::LoadedCheckpoint& checkpoint) {
  checkpoint::Checksummer checksum;
  AddTensors(checkpoint.Tensors("parameters"), checksum);
  AddTensors(checkpoint.Tensors("optimizer"), checksum);
  return checksum.Value();
}

// Transitions, frames, priorities and all other state that decides the next draws.
std::string ReplayHash(const checkpoint::LoadedCheckpoint& checkpoint) {
  checkpoint::Checksummer checksum;
  AddTensors(checkpoint.Tensors("replay"), checksum);
  const std::string document = checkpoint.document.at("replay").dump();
  checksum.Add(std::as_bytes(std::span(document)));
  for (const auto& [name, stream] : checkpoint.manifest.streams) {
    const std::string records = checkpoint.StreamHash(name);
    checksum.Add(std::as_bytes(std::span(records)));
  }
  return checksum.Value();
}

nlohmann::ordered_json Describe(const RunFolder& folder) {
  const RunState state = folder.State();
  if (state == RunState::kNew) {
    throw Error(ErrorKind::kMissingData, "there is no run in " + folder.path().string());
  }
  const RunConfig config = ReadDumpedConfig(folder.config());
  nlohmann::ordered_json json = {
      {"run", folder.path().string()},  {"agent", config.agent.name},
      {"env", config.environment.name}, {"seed", config.seed},
      {"total_frames", config.frames},  {"finished", state == RunState::kFinished}};
  json["checkpoints"] = nlohmann::ordered_json::array();
  for (const checkpoint::Manifest& manifest :
       checkpoint::InspectCheckpoints(folder.checkpoints())) {
    json["checkpoints"].push_back({{"number", manifest.number},
                                   {"frames", manifest.info.at("frames")},
                                   {"files", manifest.Files().size()}});
  }
  const checkpoint::LoadResult loaded = checkpoint::CheckpointStore(folder.checkpoints()).Load();
  json["frames"] = 0;
  json["updates"] = 0;
  if (loaded.checkpoint) {
    json["frames"] = loaded.checkpoint->manifest.info.at("frames");
    json["updates"] = loaded.checkpoint->manifest.info.at("updates");
    json["parameters_hash"] = ParametersHash(*loaded.checkpoint);
    json["replay_hash"] = ReplayHash(*loaded.checkpoint);
  }
  json["notes"] = loaded.notes;
  return json;
}

const char* StateName(checkpoint::FileState state) {
  switch (state) {
    case checkpoint::FileState::kGood:
      return "good";
    case checkpoint::FileState::kDamaged:
      return "damaged";
    case checkpoint::FileState::kMissing:
      return "missing";
    case checkpoint::FileState::kUnreferenced:
      return "unreferenced";
  }
  return "?";
}

}  // namespace

int RunInspect(const RunOptions& options) {
  const nlohmann::ordered_json json = Describe(RunFolder(options.run));
  if (options.json) {
    fmt::print("{}\n", json.dump());
    return kExitDone;
  }
  for (const auto& [key, value] : json.items()) {
    fmt::print("{:<16} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return kExitDone;
}

int RunVerify(const RunOptions& options) {
  const RunFolder folder(options.run);
  if (folder.State() == RunState::kNew) {
    throw Error(ErrorKind::kMissingData, "there is no run in " + folder.path().string());
  }
  const checkpoint::VerifyReport report = checkpoint::VerifyCheckpoints(folder.checkpoints());
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const checkpoint::FileReport& file : report.files) {
    files.push_back({{"name", file.name},
                     {"state", StateName(file.state)},
                     {"bytes", file.bytes},
                     {"reason", file.reason}});
    if (!options.json) {
      fmt::print("{:<13} {:>12} {}{}\n", StateName(file.state), file.bytes, file.name,
                 file.reason.empty() ? "" : ": " + file.reason);
    }
  }
  if (options.json) {
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"run", options.run.string()}, {"good", report.good()}, {"files", files}}
                   .dump());
  } else {
    fmt::print("{} files, {}\n", report.files.size(), report.good() ? "all good" : "DAMAGED");
  }
  return report.good() ? kExitDone : kExitCorrupt;
}

}  // namespace uper::cli
