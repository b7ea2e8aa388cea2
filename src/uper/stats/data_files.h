#pragma once

#include <span>
#include <string_view>

#include "uper/base/embedded_file.h"

namespace uper {

// The files of data/, sorted by name.
std::span<const EmbeddedFile> DataFiles();

// The text of a file. REQUIRES: there is one of that name.
std::string_view DataFileText(std::string_view name);

}  // namespace uper
