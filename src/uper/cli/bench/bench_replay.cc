#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "uper/base/check.h"
#include "uper/base/random.h"
#include "uper/cli/bench/bench_timing.h"
#include "uper/cli/bench/plain_sum_tree.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/python_tools.h"
#include "uper/core/importance_weights.h"
#include "uper/replay/replay_buffer.h"

namespace uper::cli {
namespace {

constexpr double kPriorityExponent = 0.6;
constexpr double kImportanceExponent = 0.4;

// A replay memory under test with the operations of a trainer, on batches prepared before.
struct Subject {
  std::string name;
  std::function<void()> insert;               // one item
  std::function<void()> draw;                 // a batch with importance weights
  std::function<void(std::uint64_t)> update;  // a batch of random items; the argument varies it
};

// Measures nanoseconds per item.
Timing Measure(const BenchReplayOptions& options, const StopFlag& stop, std::size_t items_per_call,
               const std::function<void(std::uint64_t)>& call) {
  return Scaled(MeasureSeconds({.repeats = options.repeats, .calls_per_look = 16}, stop, call),
                1e9 / static_cast<double>(items_per_call));
}

// Random priorities and items. They are drawn before the clock starts.
struct Workload {
  Workload(std::size_t entries, std::size_t batch_size) : batch(batch_size) {
    RandomStream stream(1, "bench replay");
    for (double& priority : priorities) priority = stream.Uniform();
    for (std::uint64_t& item : items) item = stream.UniformInt(entries);
  }

  // A batch from the tables. Different numbers give different batches.
  std::span<const double> Priorities(std::uint64_t number) const {
    return std::span(priorities).subspan(Offset(number), batch);
  }
  std::span<const std::uint64_t> Items(std::uint64_t number) const {
    return std::span(items).subspan(Offset(number), batch);
  }
  std::size_t Offset(std::uint64_t number) const {
    return (number * 7919) % (priorities.size() - batch);
  }

  std::size_t batch;
  std::vector<double> priorities = std::vector<double>(std::size_t{1} << 20);
  std::vector<std::uint64_t> items = std::vector<std::uint64_t>(std::size_t{1} << 20);
};

class OurMemory {
 public:
  OurMemory(std::size_t entries, const Workload& workload)
      : workload_(workload),
        buffer_({.capacity = entries, .selection = {.priority_exponent = kPriorityExponent}},
                RandomStream(1, "bench draws")),
        ids_(workload.batch),
        probabilities_(workload.batch),
        weights_(workload.batch) {
    for (std::size_t i = 0; i < entries; ++i) buffer_.Add(workload.priorities[i % (1 << 20)]);
  }

  Subject AsSubject() {
    return {.name = "uper",
            .insert = [this] { buffer_.Add(); },
            .draw =
                [this] {
                  buffer_.Sample(
                      {.importance_exponent = kImportanceExponent},
                      {.ids = ids_, .probabilities = probabilities_, .weights = weights_});
                },
            .update = [this](std::uint64_t number) { Update(number); }};
  }

  // Checks that the measured work was done: draws favor large priorities and no update was lost.
  void CheckWork() {
    UPER_CHECK(buffer_.counters().updates_of_evicted == 0, "an update missed its item");
    UPER_CHECK(buffer_.counters().invalid_updates == 0, "an update was refused");
    buffer_.Sample({.importance_exponent = 1},
                   {.ids = ids_, .probabilities = probabilities_, .weights = weights_});
    double mean = 0;
    for (const std::uint64_t id : ids_) {
      mean += buffer_.Priority(id) / static_cast<double>(ids_.size());
    }
    UPER_CHECK(ids_.size() < 100 || mean > 0.5, "draws do not favor large priorities");
  }

 private:
  void Update(std::uint64_t number) {
    const auto items = workload_.Items(number);
    const std::uint64_t first = buffer_.first_id();
    for (std::size_t i = 0; i < items.size(); ++i) ids_[i] = first + items[i];
    buffer_.SetPriorities(ids_, workload_.Priorities(number));
  }

  const Workload& workload_;
  ReplayBuffer buffer_;
  std::vector<std::uint64_t> ids_;
  std::vector<double> probabilities_;
  std::vector<float> weights_;
};

class PlainMemory {
 public:
  PlainMemory(std::size_t entries, const Workload& workload)
      : workload_(workload),
        entries_(entries),
        tree_(entries),
        stream_(1, "bench draws"),
        probabilities_(workload.batch),
        weights_(workload.batch) {
    for (std::size_t i = 0; i < entries; ++i) {
      tree_.Set(i, std::pow(workload.priorities[i % (1 << 20)], kPriorityExponent));
    }
  }

  Subject AsSubject() {
    return {.name = "plain binary tree",
            .insert = [this] { Insert(); },
            .draw = [this] { Draw(); },
            .update = [this](std::uint64_t number) { Update(number); }};
  }

 private:
  void Insert() {
    tree_.Set(next_, 1.0);  // the largest priority; its power was taken when it was stored
    next_ = next_ + 1 == entries_ ? 0 : next_ + 1;
  }

  void Draw() {
    const double total = tree_.Total();
    for (double& probability : probabilities_) {
      probability = tree_.Get(tree_.Find(stream_.Uniform() * total)) / total;
    }
    ImportanceWeights(probabilities_, static_cast<double>(entries_), kImportanceExponent,
                      WeightNormalization::kBatchMax, 0, weights_);
  }

  void Update(std::uint64_t number) {
    const auto items = workload_.Items(number);
    const auto priorities = workload_.Priorities(number);
    for (std::size_t i = 0; i < items.size(); ++i) {
      tree_.Set(items[i], std::pow(priorities[i], kPriorityExponent));
    }
  }

  const Workload& workload_;
  const std::size_t entries_;
  PlainSumTree tree_;
  RandomStream stream_;
  std::size_t next_ = 0;
  std::vector<double> probabilities_;
  std::vector<float> weights_;
};

struct Row {
  std::string name;
  Timing draw, update, insert;
};

Row MeasureSubject(const Subject& subject, const BenchReplayOptions& options,
                   const StopFlag& stop) {
  const std::size_t batch = static_cast<std::size_t>(options.batch);
  return {.name = subject.name,
          .draw = Measure(options, stop, batch, [&](std::uint64_t) { subject.draw(); }),
          .update = Measure(options, stop, batch, subject.update),
          .insert = Measure(options, stop, 1, [&](std::uint64_t) { subject.insert(); })};
}

// cpprb and TorchRL through their Python interfaces, where they are installed.
std::vector<Row> MeasurePeers(const BenchReplayOptions& options) {
  const CommandResult result = RunPython(
      {(SourceFolder() / "benchmarks/replay_peers.py").string(), std::to_string(options.entries),
       std::to_string(options.batch), std::to_string(options.repeats)});
  if (result.exit_status != 0) {
    throw Error(ErrorKind::kInternal,
                "benchmarks/replay_peers.py failed; --no-peers leaves it out");
  }
  std::vector<Row> rows;
  for (const auto& peer : nlohmann::json::parse(result.output)) {
    rows.push_back({.name = peer.at("name"),
                    .draw = TimingFrom(peer.at("draw_ns")),
                    .update = TimingFrom(peer.at("update_ns")),
                    .insert = TimingFrom(peer.at("insert_ns"))});
  }
  return rows;
}

void PrintTable(const std::vector<Row>& rows, const BenchReplayOptions& options) {
  fmt::print("{} entries, batch {}, one thread; ns per item: median [lowest, highest] of {}\n",
             options.entries, options.batch, options.repeats);
  fmt::print("{:28} {:>24} {:>24} {:>24}\n", "", "draw + weight", "update", "insert");
  const auto text = [](const Timing& timing) {
    return fmt::format("{:.0f} [{:.0f}, {:.0f}]", timing.median, timing.low, timing.high);
  };
  for (const Row& row : rows) {
    fmt::print("{:28} {:>24} {:>24} {:>24}\n", row.name, text(row.draw), text(row.update),
               text(row.insert));
  }
}

nlohmann::ordered_json RowJson(const Row& row) {
  return {{"name", row.name},
          {"draw_ns", row.draw.median},
          {"update_ns", row.update.median},
          {"insert_ns", row.insert.median},
          {"draw_ns_spread", SpreadJson(row.draw)},
          {"update_ns_spread", SpreadJson(row.update)},
          {"insert_ns_spread", SpreadJson(row.insert)}};
}

void PrintJson(const std::vector<Row>& rows, const BenchReplayOptions& options) {
  nlohmann::ordered_json json = {{"entries", options.entries}, {"batch", options.batch}};
  json.update(RowJson(rows.front()));
  json.erase("name");
  json["peers"] = nlohmann::ordered_json::array();
  for (std::size_t i = 1; i < rows.size(); ++i) json["peers"].push_back(RowJson(rows[i]));
  fmt::print("{}\n", json.dump());
}

}  // namespace

int RunBenchReplay(const BenchReplayOptions& options, const StopFlag& stop) {
  const std::size_t entries = static_cast<std::size_t>(options.entries);
  const Workload workload(entries, static_cast<std::size_t>(options.batch));
  std::vector<Row> rows;
  {
    OurMemory memory(entries, workload);
    rows.push_back(MeasureSubject(memory.AsSubject(), options, stop));
    memory.CheckWork();
  }
  {
    PlainMemory memory(entries, workload);
    rows.push_back(MeasureSubject(memory.AsSubject(), options, stop));
  }
  if (options.peers) {
    for (Row& row : MeasurePeers(options)) rows.push_back(std::move(row));
  }
  if (options.json) {
    PrintJson(rows, options);
  } else {
    PrintTable(rows, options);
  }
  return kExitDone;
}

}  // namespace uper::cli
