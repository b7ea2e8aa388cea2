#pragma once

#include <concepts>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "uper/base/files/atomic_file.h"

namespace uper {

// The shortest text that reads back as the same number; "nan", "inf", "-inf" otherwise.
std::string NumberText(double value);

// Writes a CSV file with a fixed number of columns; the file appears when Commit() is called.
class CsvWriter {
 public:
  CsvWriter(std::filesystem::path path, std::initializer_list<std::string_view> columns);

  // Writes one row with one argument per column: numbers, or text without commas, quotes and line
  // ends.
  template <typename... Fields>
  void Row(const Fields&... fields) {
    StartRow(sizeof...(fields));
    (AppendField(fields), ...);
    EndRow();
  }

  void Commit() { file_.Commit(); }

 private:
  void StartRow(std::size_t fields);
  void AppendField(double value);
  void AppendField(std::string_view text);
  template <std::integral Integer>
  void AppendField(Integer value) {
    AppendField(std::string_view(std::to_string(value)));
  }
  void EndRow();

  AtomicFile file_;
  const std::size_t columns_;
  std::string line_;  // the row so far, with a comma after each field
};

}  // namespace uper
