#include "uper/base/files/read_text.h"

#include <algorithm>
#include <fstream>

namespace uper {

std::optional<std::string> ReadText(const std::filesystem::path& path, std::size_t limit) {
  constexpr std::size_t kBlock = 1 << 16;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  while (file && text.size() <= limit) {
    const std::size_t before = text.size();
    const std::size_t wanted = std::min(kBlock, limit + 1 - before);
    text.resize(before + wanted);
    file.read(text.data() + before, static_cast<std::streamsize>(wanted));
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return std::nullopt;
  return text;
}

}  // namespace uper
