#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "uper/base/files/byte_stream.h"
#include "uper/checkpoint/checksum.h"
#include "uper/engine/device_replay.h"

namespace uper {

// Records every call to a replay memory on a device, with checksums of its arguments and results,
// and forwards it.
class RecordingDeviceReplay final : public DeviceReplay {
 public:
  RecordingDeviceReplay(std::unique_ptr<DeviceReplay> inner,
                        std::function<void(const std::string&)> record)
      : inner_(std::move(inner)), record_(std::move(record)) {}

  const DeviceReplaySpec& spec() const override { return inner_->spec(); }

  void MirrorHost(const DeviceRecordSource& transitions,
                  const DeviceRecordSource& frames) override {
    Record("mirror", transitions.first_id, transitions.next_id, frames.first_id, frames.next_id);
    inner_->MirrorHost(Read("transitions", transitions, spec().record_bytes),
                       Read("frames", frames, spec().frame_bytes));
  }
  std::span<std::byte> ReserveFrames(std::uint64_t first, std::size_t count) override {
    Record("reserve", first, count);
    return inner_->ReserveFrames(first, count);
  }
  void QueueUpdates(std::span<const DeviceUpdate> updates) override {
    Record("queue", updates.size());
    for (const DeviceUpdate& update : updates) {
      Record(" update", update.importance_exponent, Sum(update.uniforms), Sum(update.ids),
             Sum(update.weights));
    }
    inner_->QueueUpdates(updates);
  }
  std::optional<DeviceUpdateReport> PollReport() override {
    return Recorded(/*wait=*/false, inner_->PollReport());
  }
  std::optional<DeviceUpdateReport> AwaitReport() override {
    return Recorded(/*wait=*/true, inner_->AwaitReport());
  }
  bool HasPendingUpdates() override {
    const bool pending = inner_->HasPendingUpdates();
    Record("pending", pending);
    return pending;
  }
  void BeginDecisions(std::span<const std::uint32_t> slots, int count) override {
    Record("decide", count, Sum(slots));
    inner_->BeginDecisions(slots, count);
  }
  void AwaitActionValues(int count, std::span<float> q) override {
    inner_->AwaitActionValues(count, q);
    Record("values", count, Sum(q));
  }
  void PrelaunchDecision() override {
    Record("prelaunch");
    inner_->PrelaunchDecision();
  }
  void GetPriorities(std::span<float> priorities, double& largest) override {
    inner_->GetPriorities(priorities, largest);
    Record("get priorities", Sum(priorities), largest);
  }
  void SetPriorities(std::span<const float> priorities, double largest) override {
    Record("set priorities", Sum(priorities), largest);
    inner_->SetPriorities(priorities, largest);
  }

 private:
  std::optional<DeviceUpdateReport> Recorded(bool wait, std::optional<DeviceUpdateReport> report) {
    Record("report", wait, report.has_value());
    if (report) Record(" of", report->loss, Sum(report->ids), Sum(report->td_error));
    return report;
  }
  template <typename T>
  static std::string Sum(std::span<T> values) {
    return std::to_string(values.size()) + ":" + checkpoint::ChecksumOf(std::as_bytes(values));
  }
  static std::string Word(const std::string& text) { return text; }
  template <typename T>
  static std::string Word(const T& value) {
    return std::to_string(value);
  }
  template <typename... Values>
  void Record(const std::string& name, const Values&... values) {
    std::string line = name;
    (line.append(" ").append(Word(values)), ...);
    record_(line);
  }
  DeviceRecordSource Read(const char* name, DeviceRecordSource source, std::size_t bytes) {
    auto read = source.read;
    source.read = [this, name, read, bytes](std::uint64_t begin, std::uint64_t end,
                                            std::span<std::byte> out) {
      read(begin, end, out);
      Record(" read", std::string(name), begin, end,
             Sum(std::span<const std::byte>(out.first((end - begin) * bytes))));
    };
    return source;
  }

  const std::unique_ptr<DeviceReplay> inner_;
  const std::function<void(const std::string&)> record_;
};

}  // namespace uper
