#include "uper/metrics/metrics_log.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "uper/base/files/files_for_tests.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/metrics/event_encoder.h"
#include "uper/metrics/metrics_window.h"

namespace uper {
namespace {

MetricsRow Row(int i) {
  MetricsRow row{.frames = 1000 * i, .updates = 10 * i, .episodes = i};
  if (i % 2 == 0) row.train_return = 0.1 * i;
  row.loss = 1.0 / (1 + i);
  row.frames_per_second = 12345.678;
  row.effective_sample_size = 32;
  return row;
}

class MetricsLogTest : public FolderTest {
 protected:
  MetricsLogOptions Options() {
    return {.csv = folder_ / "metrics.csv",
            .events = folder_ / "events.out.tfevents.0000000001.uper",
            .warn = [this](const std::string& text) { warnings_.push_back(text); },
            .wall_clock = [] { return 1.5e9; }};
  }
  std::string Csv() const { return FileContent(folder_ / "metrics.csv"); }
  std::string Events() const {
    return FileContent(folder_ / "events.out.tfevents.0000000001.uper");
  }

  std::vector<std::string> warnings_;
};

// Scripts may rely on this order.
TEST(MetricsRowTest, ColumnsComeInTheDocumentedOrder) {
  const std::string header = MetricsHeader();
  EXPECT_TRUE(header.starts_with(
      "frames,updates,episodes,train_return,eval_return,loss,grad_norm,epsilon,beta,"
      "frames_per_second,priority_mean,priority_max,epistemic_mean,aleatoric_mean,"
      "target_distance_mean,effective_sample_size,"))
      << header;
  EXPECT_TRUE(header.ends_with(",wall_seconds\n"));
}

TEST(MetricsRowTest, MissingValuesAreEmptyAndIntegersAreWhole) {
  const std::string line = MetricsLine({.frames = 200'000'000, .updates = 3, .loss = 0.1});
  EXPECT_TRUE(line.starts_with("200000000,3,0,,,0.1,,,,,")) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), ','),
            static_cast<std::ptrdiff_t>(std::size(kMetricsColumns)) - 1);
  EXPECT_TRUE(line.ends_with(",\n"));
}

TEST(MetricsRowTest, EveryFieldHasItsColumn) {
  // Each column of a row with distinct values must show its own value.
  MetricsRow row;
  double next = 1;
  for (const MetricsColumn& column : kMetricsColumns) {
    if (const auto* count = std::get_if<std::int64_t MetricsRow::*>(&column.field)) {
      row.** count = static_cast<std::int64_t>(next++);
    } else {
      row.*std::get<MetricsRow::Value MetricsRow::*>(column.field) = next++;
    }
  }
  std::string expected;
  for (int i = 1; i < next; ++i) expected += std::to_string(i) + ",";
  expected.back() = '\n';
  EXPECT_EQ(MetricsLine(row), expected);
  EXPECT_EQ(row.wall_seconds, next - 1);
  EXPECT_EQ(row.effective_sample_size, 16);
}

// A field without a line in the table makes one of these sums too small.
TEST(MetricsRowTest, TheTableListsEveryFieldOfRowAndWindow) {
  std::size_t row_bytes = 0;
  std::size_t window_bytes = 0;
  for (const MetricsColumn& column : kMetricsColumns) {
    std::visit([&](auto field) { row_bytes += sizeof(MetricsRow{}.*field); }, column.field);
    std::visit(
        [&](auto source) {
          if constexpr (!std::is_same_v<decltype(source), std::monostate>) {
            window_bytes += sizeof(MetricsWindow{}.*source);
          }
        },
        column.source);
  }
  EXPECT_EQ(row_bytes, sizeof(MetricsRow));
  EXPECT_EQ(window_bytes, sizeof(MetricsWindow));
}

// A window in which each value is another number.
MetricsWindow DistinctWindow() {
  MetricsWindow window;
  double next = 1;
  for (const MetricsColumn& column : kMetricsColumns) {
    std::visit(
        [&](auto source) {
          using Source = decltype(source);
          if constexpr (std::is_same_v<Source, RunningMean MetricsWindow::*>) {
            window.*source = {.sum = 2 * next, .count = 2};
          } else if constexpr (!std::is_same_v<Source, std::monostate>) {
            window.*source = next;
          }
        },
        column.source);
    ++next;
  }
  return window;
}

TEST(MetricsWindowTest, EverySourceFillsItsColumn) {
  MetricsRow row;
  DistinctWindow().FillRow(row);
  double next = 1;
  for (const MetricsColumn& column : kMetricsColumns) {
    if (!std::holds_alternative<std::monostate>(column.source)) {
      EXPECT_EQ(column.ValueIn(row), next) << column.name;
    }
    ++next;
  }
  EXPECT_FALSE(row.epsilon.has_value());
  EXPECT_FALSE(row.wall_seconds.has_value());
}

TEST(MetricsWindowTest, WithoutUpdatesTheColumnsAreEmpty) {
  MetricsRow row;
  MetricsWindow{}.FillRow(row);
  for (const MetricsColumn& column : kMetricsColumns) {
    const bool is_count = std::holds_alternative<std::int64_t MetricsRow::*>(column.field);
    EXPECT_EQ(column.ValueIn(row).has_value(), is_count) << column.name;
  }
}

TEST(MetricsWindowTest, ComesBackFromACheckpoint) {
  // The names are those of the checkpoints of version 0.1.
  nlohmann::json saved = ToJson(DistinctWindow());
  for (const char* name :
       {"train_return", "train_episode_frames", "loss", "grad_norm", "priority", "epistemic",
        "aleatoric", "target_distance", "td_error", "effective_sample_size", "floored", "capped",
        "noisy_draws", "priority_max", "refused_priorities", "eval_return", "eval_episodes"}) {
    EXPECT_TRUE(saved.contains(name)) << name;
  }
  EXPECT_EQ(saved.dump(), ToJson(MetricsWindowFrom(saved)).dump());
  EXPECT_NE(saved.dump(), ToJson(MetricsWindow{}).dump());
  const nlohmann::json empty = ToJson(MetricsWindow{});
  EXPECT_EQ(empty.dump(), ToJson(MetricsWindowFrom(empty)).dump());
  EXPECT_TRUE(empty.at("eval_return").is_null());
  saved.erase("loss");
  EXPECT_THROW(MetricsWindowFrom(saved), nlohmann::json::exception);
}

TEST(MetricsRowTest, DocumentationHasARowForEveryColumn) {
  for (const MetricsColumn& column : kMetricsColumns) {
    EXPECT_NE(MetricsDocumentation().find("| `" + std::string(column.name) + "` | "),
              std::string::npos);
  }
}

TEST_F(MetricsLogTest, ContinuedLogsEqualUninterruptedOnesAtEveryCut) {
  std::string csv;
  std::string events;
  {
    MetricsLog log(Options());
    for (int i = 1; i <= 6; ++i) log.Append(Row(i));
    csv = Csv();
    events = Events();
  }
  for (int saved_at = 0; saved_at <= 6; ++saved_at) {
    nlohmann::json state;
    {
      MetricsLog log(Options());
      for (int i = 1; i <= 6; ++i) {
        if (i == saved_at + 1) state = log.SaveState();
        log.Append(Row(i));
      }
      if (saved_at == 6) state = log.SaveState();
    }
    // The process dies in the middle of a line.
    std::ofstream(folder_ / "metrics.csv", std::ios::app) << "7000,7";
    std::ofstream(Options().events, std::ios::app) << std::string("\x18\0\0", 3);
    MetricsLog log(Options(), state);
    for (int i = saved_at + 1; i <= 6; ++i) log.Append(Row(i));
    EXPECT_EQ(Csv(), csv);
    EXPECT_EQ(Events(), events);
  }
  EXPECT_EQ(WholeTfRecords(events), events.size());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(MetricsLogTest, LostFilesAreReportedAndStartWithTheirHeaders) {
  nlohmann::json state;
  {
    MetricsLog log(Options());
    log.Append(Row(1));
    state = log.SaveState();
  }
  std::filesystem::remove(folder_ / "metrics.csv");
  std::filesystem::remove(Options().events);
  MetricsLog log(Options(), state);
  log.Append(Row(2));
  EXPECT_EQ(Csv(), MetricsHeader() + MetricsLine(Row(2)));
  EXPECT_EQ(WholeTfRecords(Events()), Events().size());
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(MetricsLogTest, DamagedStatesAreRefused) {
  MetricsLog(Options()).SaveState();
  for (const char* text :
       {"{}", "[]", R"({"csv": {"bytes": -1, "pending": ""}, "events": {}})",
        R"({"csv": {"bytes": 1, "pending": "0"}, "events": {"bytes": 1, "pending": ""}})",
        R"({"csv": {"bytes": 1, "pending": "0G"}, "events": {"bytes": 1, "pending": ""}})"}) {
    const nlohmann::json state = checkpoint::ParseJson(text, {}, "t");
    EXPECT_EQ(Catch([&] { MetricsLog log(Options(), state); }).kind, ErrorKind::kCorrupt) << text;
  }
}

// Leaves files for tests/test_tensorboard.py, which reads them with TensorBoard.
TEST_F(MetricsLogTest, WritesASampleForOtherReaders) {
  const char* const target = std::getenv("UPER_SAMPLE_FOLDER");
  MetricsLogOptions options = Options();
  if (target != nullptr) {
    options.csv = std::filesystem::path(target) / "metrics.csv";
    options.events = std::filesystem::path(target) / "events.out.tfevents.0000000001.uper";
  }
  nlohmann::json state;
  {
    MetricsLog log(options);
    for (int i = 1; i <= 50; ++i) log.Append(Row(i));
    state = log.SaveState();
    for (int i = 51; i <= 60; ++i) log.Append(Row(i));
  }
  MetricsLog log(options, state);
  for (int i = 51; i <= 100; ++i) log.Append(Row(i));
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace uper
