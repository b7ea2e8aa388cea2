#pragma once

#include <string_view>

namespace uper {

// A text file that is part of the program (cmake/embed_files.cmake).
struct EmbeddedFile {
  std::string_view path;  // below its folder: "minatar/qr-dqn.toml"
  std::string_view text;
};

}  // namespace uper
