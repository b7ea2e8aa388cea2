#include "uper/train/run/run_folder.h"

#include <charconv>
#include <fstream>
#include <string>

#include "uper/base/error.h"
#include "uper/base/files/atomic_file.h"

namespace uper {
namespace {

namespace fs = std::filesystem;

bool HasEntries(const fs::path& folder) {
  std::error_code error;
  return fs::directory_iterator(folder, error) != fs::directory_iterator() && !error;
}

}  // namespace

RunState RunFolder::State() const {
  if (FinishedFrames()) return RunState::kFinished;
  if (fs::exists(config())) return RunState::kUnfinished;
  if (HasEntries(checkpoints())) {
    throw Error(ErrorKind::kCorrupt,
                path_.string() +
                    " holds checkpoints but no config.toml; restore that file, or "
                    "choose another folder with --out");
  }
  return RunState::kNew;
}

std::optional<std::int64_t> RunFolder::FinishedFrames() const {
  if (!fs::exists(finished())) return std::nullopt;
  std::ifstream file(finished());
  std::string line;
  std::getline(file, line);
  std::int64_t frames = 0;
  const char* const end = line.data() + line.size();
  const auto result = std::from_chars(line.data(), end, frames);
  if (result.ec != std::errc() || result.ptr != end || frames < 0) {
    throw Error(ErrorKind::kCorrupt, finished().string() +
                                         " does not hold a number of frames; "
                                         "delete it to continue the run");
  }
  return frames;
}

void RunFolder::MarkFinished(std::int64_t frames) const {
  WriteFileAtomically(finished(), std::to_string(frames) + "\n");
}

void RunFolder::ClearFinished() const {
  std::error_code error;
  fs::remove(finished(), error);
  if (error) {
    throw Error(ErrorKind::kUsage, "cannot delete " + finished().string() + ": " + error.message());
  }
}

}  // namespace uper
