#include "uper/base/files/csv_writer.h"

#include <charconv>

#include "uper/base/check.h"

namespace uper {

std::string NumberText(double value) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof(text), value);
  return {text, result.ptr};
}

CsvWriter::CsvWriter(std::filesystem::path path, std::initializer_list<std::string_view> columns)
    : file_(std::move(path)), columns_(columns.size()) {
  StartRow(columns.size());
  for (const std::string_view column : columns) AppendField(column);
  EndRow();
}

void CsvWriter::StartRow(std::size_t fields) {
  UPER_CHECK(fields == columns_, "a row needs one field a column");
  line_.clear();
}

void CsvWriter::AppendField(double value) { AppendField(std::string_view(NumberText(value))); }

void CsvWriter::AppendField(std::string_view text) {
  UPER_DCHECK(text.find_first_of(",\"\r\n") == std::string_view::npos, "text needs no quoting");
  line_ += text;
  line_ += ',';
}

void CsvWriter::EndRow() {
  line_.back() = '\n';
  file_.Write(line_);
}

}  // namespace uper
