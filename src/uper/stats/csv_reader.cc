#include "uper/stats/csv_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "uper/base/error.h"

namespace uper {
namespace {

std::vector<std::string> SplitLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

CsvTable::CsvTable(std::string_view text, std::string source, bool last_line_may_be_cut)
    : source_(std::move(source)) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool cut = end == std::string_view::npos;
    if (cut && last_line_may_be_cut) break;
    std::vector<std::string> cells = SplitLine(text.substr(0, end));
    text.remove_prefix(cut ? text.size() : end + 1);
    if (header_.empty()) {
      header_ = std::move(cells);
    } else if (cells.size() == header_.size()) {
      cells_.push_back(std::move(cells));
    } else {
      throw Error(ErrorKind::kCorrupt, source_ + ":" + std::to_string(cells_.size() + 2) + ": " +
                                           std::to_string(cells.size()) +
                                           " cells where the header has " +
                                           std::to_string(header_.size()));
    }
  }
}

std::optional<std::size_t> CsvTable::Find(std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

std::size_t CsvTable::Column(std::string_view column) const {
  if (const auto found = Find(column)) return *found;
  throw Error(ErrorKind::kCorrupt, source_ + " has no column '" + std::string(column) + "'");
}

const std::string& CsvTable::Text(std::size_t row, std::size_t column) const {
  return cells_.at(row).at(column);
}

std::optional<double> CsvTable::Number(std::size_t row, std::size_t column) const {
  const std::string& text = Text(row, column);
  if (text.empty()) return std::nullopt;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed != end || !std::isfinite(number)) {
    throw Error(ErrorKind::kCorrupt, source_ + ":" + std::to_string(row + 2) + ": '" + text +
                                         "' in column '" + header_[column] + "' is not a number");
  }
  return number;
}

}  // namespace uper
