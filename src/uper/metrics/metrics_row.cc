#include "uper/metrics/metrics_row.h"

#include "uper/base/files/csv_writer.h"
#include "uper/base/markdown.h"
#include "uper/base/overloaded.h"

namespace uper {
namespace {

std::optional<double> ValueOf(const MetricsWindow& window, const MetricsColumn::Source& source) {
  using Result = std::optional<double>;
  return std::visit(
      Overloaded{[](std::monostate) { return Result(); },
                 [&](RunningMean MetricsWindow::* mean) { return (window.*mean).Value(); },
                 [&](Result MetricsWindow::* latest) { return window.*latest; },
                 [&](double MetricsWindow::* value) {
                   return window.priority.count > 0 ? Result(window.*value) : Result();
                 }},
      source);
}

}  // namespace

void MetricsWindow::FillRow(MetricsRow& row) const {
  for (const MetricsColumn& column : kMetricsColumns) {
    if (std::holds_alternative<std::monostate>(column.source)) continue;
    row.*std::get<MetricsRow::Value MetricsRow::*>(column.field) = ValueOf(*this, column.source);
  }
}

std::optional<double> MetricsColumn::ValueIn(const MetricsRow& row) const {
  if (const auto* count = std::get_if<std::int64_t MetricsRow::*>(&field)) {
    return static_cast<double>(row.**count);
  }
  return row.*std::get<MetricsRow::Value MetricsRow::*>(field);
}

std::string MetricsHeader() {
  std::string line;
  for (const MetricsColumn& column : kMetricsColumns) line += std::string(column.name) + ",";
  line.back() = '\n';
  return line;
}

std::string MetricsLine(const MetricsRow& row) {
  std::string line;
  for (const MetricsColumn& column : kMetricsColumns) {
    if (const auto* count = std::get_if<std::int64_t MetricsRow::*>(&column.field)) {
      line += std::to_string(row.**count);
    } else if (const auto value = column.ValueIn(row)) {
      line += NumberText(*value);
    }
    line += ',';
  }
  line.back() = '\n';
  return line;
}

std::string MetricsDocumentation() {
  std::string text = "| column | meaning |\n|---|---|\n";
  for (const MetricsColumn& column : kMetricsColumns) {
    text += "| `" + std::string(column.name) + "` | " + MarkdownCell(column.doc) + " |\n";
  }
  return text;
}

}  // namespace uper
