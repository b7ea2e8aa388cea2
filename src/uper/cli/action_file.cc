#include "uper/cli/action_file.h"

#include <charconv>
#include <optional>

#include "uper/base/error.h"
#include "uper/base/files/read_text.h"

namespace uper::cli {
namespace {

constexpr std::size_t kShownCharacters = 40;

// The line, cut and cleaned for a message.
std::string Shown(std::string_view line) {
  std::string text(line.substr(0, kShownCharacters));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text + (line.size() > kShownCharacters ? "..." : "");
}

int ParseAction(std::string_view line, int actions, const std::string& where) {
  int action = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), action);
  const bool whole = error == std::errc() && end == line.data() + line.size();
  if (!whole || action < 0 || action >= actions) {
    throw Error(ErrorKind::kUsage, where + ": '" + Shown(line) +
                                       "' is not an action: one number from 0 to " +
                                       std::to_string(actions - 1) + " is expected per line");
  }
  return action;
}

}  // namespace

std::vector<int> ParseActions(std::string_view text, int actions, const std::string& source) {
  std::vector<int> parsed;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    parsed.push_back(
        ParseAction(line, actions, source + ", line " + std::to_string(parsed.size() + 1)));
    begin = end + 1;
  }
  if (parsed.empty()) throw Error(ErrorKind::kUsage, source + " holds no actions");
  return parsed;
}

std::vector<int> ReadActionFile(const std::filesystem::path& path, int actions) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorKind::kUsage, path.string() + " is a folder, not a file of actions");
  }
  const std::optional<std::string> text = ReadText(path);
  if (!text) throw Error(ErrorKind::kMissingData, "cannot read the actions in " + path.string());
  return ParseActions(*text, actions, path.string());
}

}  // namespace uper::cli
