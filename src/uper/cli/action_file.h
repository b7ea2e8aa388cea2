#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace uper::cli {

// Reads actions from text: each line is one index into the environment's action set. `source` names
// the text in messages. Throws Error(kUsage), with line and valid range, for anything but an index
// 0, ..., actions - 1, and for a text without actions.
std::vector<int> ParseActions(std::string_view text, int actions, const std::string& source);

// Throws Error(kMissingData) when there is no such file, Error(kUsage) when it is a folder.
std::vector<int> ReadActionFile(const std::filesystem::path& path, int actions);

}  // namespace uper::cli
