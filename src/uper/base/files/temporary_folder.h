#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "uper/base/error.h"

namespace uper {

// A folder that exists as long as this object. It lies in $TMPDIR, or else in /tmp.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "uper-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorKind::kUsage, "cannot create a folder like " + name + "; set TMPDIR");
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace uper
