#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace uper {

// A small CSV text: a header, then rows of as many cells. No quotes.
class CsvTable {
 public:
  // `source` is named in messages. Throws Error(kCorrupt) for a row with another number of cells.
  // With `last_line_may_be_cut`, such a last line without a line end is ignored: the log is still
  // being written.
  CsvTable(std::string_view text, std::string source, bool last_line_may_be_cut = false);

  std::size_t rows() const { return cells_.size(); }
  // Nothing if there is no such column.
  std::optional<std::size_t> Find(std::string_view column) const;
  // Throws Error(kCorrupt) if there is no such column.
  std::size_t Column(std::string_view column) const;

  const std::string& Text(std::size_t row, std::size_t column) const;
  // Nothing for an empty cell. Throws Error(kCorrupt), with file and line, for a cell that is not a
  // finite number.
  std::optional<double> Number(std::size_t row, std::size_t column) const;

 private:
  std::string source_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> cells_;  // [row][column]
};

}  // namespace uper
