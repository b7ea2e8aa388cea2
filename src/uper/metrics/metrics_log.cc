#include "uper/metrics/metrics_log.h"

#include <chrono>
#include <cmath>
#include <vector>

#include "uper/base/error.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/metrics/event_encoder.h"

namespace uper {
namespace {

using nlohmann::json;

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Length of the text up to its last line end.
std::size_t WholeLines(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? 0 : end + 1;
}

// Bytes as hexadecimal digits, for a JSON string.
std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string FromHex(const std::string& text) {
  if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Error(ErrorKind::kCorrupt, "the state of the logs is damaged");
  }
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  }
  return bytes;
}

json Encode(const LogPosition& position) {
  return {{"bytes", position.bytes}, {"pending", Hex(position.pending)}};
}

LogPosition Decode(const json& state, const char* log) {
  const json position = checkpoint::JsonMember<json>(state, log, "the state of the logs");
  return {
      .bytes = checkpoint::JsonMember<std::uint64_t>(position, "bytes", "the state of the logs"),
      .pending = FromHex(
          checkpoint::JsonMember<std::string>(position, "pending", "the state of the logs"))};
}

// A file that was lost starts again with its header.
AppendLog ContinueOrRestart(const std::filesystem::path& path, const LogPosition& position,
                            std::size_t (*whole)(std::string_view), const std::string& header,
                            const WarningCallback& warn) {
  AppendLog log = AppendLog::Continue(path, position, whole, RateLimitedWarning(warn));
  if (log.position().bytes == 0 && log.position().pending.empty()) log.Append(header);
  return log;
}

}  // namespace

MetricsLog::MetricsLog(const MetricsLogOptions& options)
    : wall_clock_(options.wall_clock ? options.wall_clock : &SystemSeconds),
      csv_(AppendLog::Create(options.csv, RateLimitedWarning(options.warn))),
      events_(AppendLog::Create(options.events, RateLimitedWarning(options.warn))) {
  csv_.Append(MetricsHeader());
  events_.Append(EventFileHeader(wall_clock_()));
}

MetricsLog::MetricsLog(const MetricsLogOptions& options, const json& state)
    : wall_clock_(options.wall_clock ? options.wall_clock : &SystemSeconds),
      csv_(ContinueOrRestart(options.csv, Decode(state, "csv"), &WholeLines, MetricsHeader(),
                             options.warn)),
      events_(ContinueOrRestart(options.events, Decode(state, "events"), &WholeTfRecords,
                                EventFileHeader(wall_clock_()), options.warn)) {}

void MetricsLog::Append(const MetricsRow& row) {
  csv_.Append(MetricsLine(row));
  std::vector<TaggedScalar> scalars;
  for (const MetricsColumn& column : kMetricsColumns) {
    const std::optional<double> value = column.ValueIn(row);
    if (value && column.name != "frames") scalars.push_back({.tag = column.name, .value = *value});
  }
  events_.Append(ScalarEvent(wall_clock_(), row.frames, scalars));
}

json MetricsLog::SaveState() const {
  return {{"csv", Encode(csv_.position())}, {"events", Encode(events_.position())}};
}

std::string MetricsLog::Sync() const {
  const std::string csv = csv_.Sync();
  const std::string events = events_.Sync();
  return csv.empty() || events.empty() ? csv + events : csv + "; " + events;
}

}  // namespace uper
