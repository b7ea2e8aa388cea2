#pragma once

#include <span>
#include <string_view>

namespace uper {

// One file of data/, built into the program (cmake/embed_data_files.cmake makes the table).
struct DataFile {
  std::string_view name;  // "dqnzoo-median.csv"
  std::string_view text;
};

// All of them, sorted by name.
std::span<const DataFile> DataFiles();

// The text of a file. REQUIRES: there is one of that name.
std::string_view DataFileText(std::string_view name);

}  // namespace uper
