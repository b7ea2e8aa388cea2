#pragma once

// A file system in memory for tests: counts its operations, fails or stops at a chosen one, and
// after a stop shows what a disk might hold.

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "uper/checkpoint/file_system.h"

namespace uper::checkpoint {

// Thrown at the operation where the process is to crash, and at every later operation.
struct SimulatedCrash {};

// The state of the disk after a crash.
enum class CrashKind {
  kProcess,           // everything that was written stays
  kTornWrite,         // the same, and half of the write that was under way
  kLoseData,          // files keep only what was synced; all names stay
  kLoseNames,         // creations, renames and removals not synced are undone
  kLoseDataAndNames,  // both
  kReordered,         // both, but the newest change of names is there: it overtook the others
};

class FaultFileSystem : public FileSystem {
 public:
  // Stops before operation `number` (from 0).
  void CrashAt(std::size_t number, CrashKind kind) {
    crash_at_ = number;
    crash_kind_ = kind;
  }
  // Operation `number` returns `error`; a negative one makes a write short instead.
  void FailAt(std::size_t number, int error) {
    fail_at_ = number;
    fail_with_ = error;
  }
  // From operation `number` on, every operation that needs space returns `error`.
  void FailFrom(std::size_t number, int error) {
    fail_from_ = number;
    fail_with_ = error;
  }
  static constexpr int kShortWrite = -1;
  // The free space that the disk reports; writing does not change it.
  std::uint64_t free_bytes = ~std::uint64_t{0};

  std::size_t operations() const { return operations_; }
  std::size_t open_handles() const { return open_.size(); }

  // Restarts the machine after the crash: the same disk, no faults.
  void Restart() {
    const bool reordered = crash_kind_ == CrashKind::kReordered;
    const bool lose_both = crash_kind_ == CrashKind::kLoseDataAndNames || reordered;
    const bool lose_data = crash_kind_ == CrashKind::kLoseData || lose_both;
    const bool lose_names = crash_kind_ == CrashKind::kLoseNames || lose_both;
    if (crashed_ && lose_names) names_ = durable_names_;
    if (crashed_ && reordered) {
      for (const auto& [path, node] : newest_change_) {
        names_.erase(path);
        if (node != nullptr) names_[path] = node;
      }
    }
    for (auto& [path, node] : names_) {
      if (crashed_ && lose_data) node->content = node->durable;
      node->durable = node->content;
    }
    durable_names_ = names_;
    ClearFaults();
  }
  void ClearFaults() {
    crash_at_.reset();
    fail_at_.reset();
    fail_from_.reset();
    crashed_ = false;
    operations_ = 0;
    open_.clear();
  }

  // Direct access to the content, for corruption.
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, node] : names_) paths.push_back(path);
    return paths;
  }
  std::vector<std::byte>& Content(const std::string& path) { return names_.at(path)->content; }
  void Erase(const std::string& path) { names_.erase(path); }
  void Swap(const std::string& a, const std::string& b) { std::swap(names_.at(a), names_.at(b)); }
  // An independent copy of the disk.
  FaultFileSystem Clone() const {
    FaultFileSystem copy;
    for (const auto& [path, node] : names_) copy.names_[path] = std::make_shared<Node>(*node);
    copy.durable_names_ = copy.names_;
    return copy;
  }

  int MakeFolder(const Path&) override { return Step(true); }
  int Create(const Path& path, Handle* handle) override {
    if (const int error = Step(true)) return error;
    *handle = next_handle_++;
    names_[path] = std::make_shared<Node>();
    newest_change_ = {{path, names_[path]}};
    open_[*handle] = names_[path];
    return 0;
  }
  int Write(Handle handle, std::span<const std::byte> bytes, std::size_t* written) override {
    auto& content = open_.at(handle)->content;
    if (crash_at_ == operations_ && crash_kind_ == CrashKind::kTornWrite) {
      content.insert(content.end(), bytes.begin(), bytes.begin() + bytes.size() / 2);
    }
    const int error = Step(true);
    if (error > 0) return error;
    *written = error == kShortWrite ? (bytes.size() + 1) / 2 : bytes.size();
    content.insert(content.end(), bytes.begin(), bytes.begin() + *written);
    return 0;
  }
  int Sync(Handle handle) override {
    if (const int error = Step(true)) return error;
    open_.at(handle)->durable = open_.at(handle)->content;
    return 0;
  }
  int Close(Handle handle) override {
    const int error = Step(false);
    open_.erase(handle);
    return error == EINTR ? 0 : error;
  }
  int Rename(const Path& from, const Path& to) override {
    if (const int error = Step(true)) return error;
    const auto found = names_.find(from);
    if (found == names_.end()) return ENOENT;
    const auto node = found->second;
    names_.erase(found);
    names_[to] = node;
    newest_change_ = {{from, nullptr}, {to, node}};
    return 0;
  }
  int Remove(const Path& path) override {
    if (const int error = Step(false)) return error;
    newest_change_ = {{path, nullptr}};
    return names_.erase(path) == 1 ? 0 : ENOENT;
  }
  int SyncFolder(const Path& folder) override {
    if (const int error = Step(true)) return error;
    const auto inside = [&](const auto& entry) {
      return Path(entry.first).parent_path() == folder;
    };
    std::erase_if(durable_names_, inside);
    newest_change_.clear();
    for (const auto& entry : names_) {
      if (inside(entry)) durable_names_.insert(entry);
    }
    return 0;
  }
  int List(const Path& folder, std::vector<std::string>* names) override {
    if (const int error = Step(false)) return error;
    names->clear();
    for (const auto& [path, node] : names_) {
      if (Path(path).parent_path() == folder) names->push_back(Path(path).filename());
    }
    return 0;
  }
  int Size(const Path& path, std::uint64_t* bytes) override {
    if (const int error = Step(false)) return error;
    const auto found = names_.find(path);
    if (found == names_.end()) return ENOENT;
    *bytes = found->second->content.size();
    return 0;
  }
  int FreeBytes(const Path&, std::uint64_t* bytes) override {
    if (const int error = Step(false)) return error;
    *bytes = free_bytes;
    return 0;
  }
  int Read(const Path& path, std::uint64_t limit, std::vector<std::byte>* bytes) override {
    if (const int error = Step(false)) return error;
    const auto found = names_.find(path);
    if (found == names_.end()) return ENOENT;
    if (found->second->content.size() > limit) return EFBIG;
    *bytes = found->second->content;
    return 0;
  }

 private:
  struct Node {
    std::vector<std::byte> content;
    std::vector<std::byte> durable;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  // Counts the operation. Returns the error to report instead of doing it, or 0.
  int Step(bool needs_space) {
    const std::size_t number = operations_++;
    if (crashed_ || crash_at_ == number) {
      crashed_ = true;
      throw SimulatedCrash();
    }
    if (fail_from_ && number >= *fail_from_ && needs_space) return fail_with_;
    return fail_at_ == number ? fail_with_ : 0;
  }

  Names names_;
  Names durable_names_;
  Names newest_change_;  // path -> what it names since the newest change; null: nothing
  std::map<Handle, std::shared_ptr<Node>> open_;
  Handle next_handle_ = 3;
  std::size_t operations_ = 0;
  bool crashed_ = false;
  std::optional<std::size_t> crash_at_;
  CrashKind crash_kind_ = CrashKind::kProcess;
  std::optional<std::size_t> fail_at_;
  std::optional<std::size_t> fail_from_;
  int fail_with_ = 0;
};

}  // namespace uper::checkpoint
