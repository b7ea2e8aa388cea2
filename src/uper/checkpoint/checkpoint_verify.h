#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "uper/checkpoint/checkpoint_manifest.h"
#include "uper/checkpoint/file_system.h"

namespace uper::checkpoint {

enum class FileState {
  kGood,
  kDamaged,
  kMissing,
  kUnreferenced,  // no manifest names it: left by an interrupted save, or not written by us
};

struct FileReport {
  std::string name;
  FileState state = FileState::kGood;
  std::uint64_t bytes = 0;  // on the disk
  std::string reason;       // empty for good files
};

struct VerifyReport {
  std::vector<FileReport> files;  // by name

  // True if no file is damaged or missing.
  bool good() const;
};

// Checks every file of every checkpoint in the folder. An empty report: there is none.
VerifyReport VerifyCheckpoints(const std::filesystem::path& folder,
                               FileSystem& files = PosixFileSystem());

// The valid manifests, newest first. Does not read the files they name.
std::vector<Manifest> InspectCheckpoints(const std::filesystem::path& folder,
                                         FileSystem& files = PosixFileSystem());

}  // namespace uper::checkpoint
