#pragma once

#include <string>
#include <string_view>

namespace uper {

// The text as a cell of a Markdown table, where a bar would end the cell.
inline std::string MarkdownCell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

}  // namespace uper
