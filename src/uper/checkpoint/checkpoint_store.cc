#include "uper/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "uper/base/check.h"
#include "uper/checkpoint/checksum.h"
#include "uper/checkpoint/segment_codec.h"

namespace uper::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemporary = ".tmp";

bool IsDiskFull(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

SaveOutcome Failed(const std::string& action, int error) {
  return {.disk_full = IsDiskFull(error),
          .problem = "cannot " + action + ": " + std::strerror(error)};
}

std::map<std::string, std::uint64_t> FirstIds(const std::map<std::string, RecordStream>& streams) {
  std::map<std::string, std::uint64_t> first_ids;
  for (const auto& [name, stream] : streams) first_ids[name] = stream.first_id;
  return first_ids;
}

}  // namespace

void SaveOutcome::ThrowIfFailed() const {
  if (saved) return;
  throw Error(disk_full ? ErrorKind::kResources : ErrorKind::kUsage,
              "the checkpoint was not saved: " + problem);
}

// Writes files under their names and remembers them, so that a failed save leaves nothing.
struct CheckpointStore::PublishJob {
  CheckpointStore& store;
  std::vector<std::string> written = {};
  std::uint64_t bytes = 0;

  // 0 or an errno value.
  int Write(const std::string& name, std::span<const std::byte> content, ManifestFile* file) {
    const int error = WriteDurably(store.files_, store.folder_ / name, content);
    if (error != 0) return error;
    written.push_back(name);
    bytes += content.size();
    *file = {.name = name, .bytes = content.size(), .checksum = ChecksumOf(content)};
    return 0;
  }

  int WriteSegment(const std::string& stream, const PreparedSave::Segment& segment,
                   ManifestSegment* entry) {
    const std::vector<std::byte> frame =
        CompressSegment(segment.raw, store.options_.compression_level);
    store.raw_bytes_ += segment.raw.size();
    store.compressed_bytes_ += frame.size();
    entry->begin = segment.begin;
    entry->end = segment.end;
    return Write(SegmentName(stream, segment.begin, segment.end, store.next_number_), frame,
                 &entry->file);
  }

  int WriteStream(const std::string& name, const PreparedSave::Stream& stream,
                  ManifestStream* entry) {
    *entry = {.record_bytes = stream.record_bytes,
              .first_id = stream.first_id,
              .next_id = stream.next_id,
              .segments = stream.stored};
    for (const PreparedSave::Segment& segment : stream.fresh) {
      ManifestSegment fresh;
      if (const int error = WriteSegment(name, segment, &fresh)) return error;
      entry->segments.push_back(fresh);
    }
    std::sort(entry->segments.begin(), entry->segments.end(),
              [](const ManifestSegment& a, const ManifestSegment& b) { return a.begin < b.begin; });
    return 0;
  }

  int WriteParts(const PreparedSave& save, Manifest* manifest) {
    const std::uint64_t number = manifest->number;
    for (const auto& [name, stream] : save.streams) {
      if (const int error = WriteStream(name, stream, &manifest->streams[name])) return error;
    }
    for (const auto& [name, file] : save.tensors) {
      const std::string file_name = NumberedName(name, number, "safetensors");
      if (const int error = Write(file_name, file, &manifest->tensors[name])) return error;
    }
    const std::string document = NumberedName("state", number, "json");
    return Write(document, BytesOfText(save.document), &manifest->document);
  }

  // Renames the manifest into place: from then on the checkpoint exists.
  int PublishManifest(const Manifest& manifest) {
    const std::string name = ManifestName(manifest.number);
    const std::string text = EncodeManifest(manifest);
    ManifestFile temporary;
    if (const int error = Write(name + kTemporary, BytesOfText(text), &temporary)) return error;
    return RepeatInterrupted([&] {
      return store.files_.Rename(store.folder_ / (name + kTemporary), store.folder_ / name);
    });
  }

  void RemoveWritten(const Manifest& manifest) {
    // A rename may be reported as failed and yet have happened.
    store.files_.Remove(store.folder_ / ManifestName(manifest.number));
    for (const std::string& name : written) store.files_.Remove(store.folder_ / name);
  }
};

CheckpointStore::CheckpointStore(fs::path folder, CheckpointStoreOptions options, FileSystem& files)
    : folder_(std::move(folder)), options_(options), files_(files) {
  UPER_CHECK(options.keep >= 1 && options.segment_records >= 1, "checkpoint store options");
}

LoadResult CheckpointStore::Load() {
  LoadResult result = LoadNewestCheckpoint(folder_, files_);
  const std::vector<std::string> names = ListCheckpoints(files_, folder_);
  kept_.clear();
  stored_.clear();
  ahead_.clear();
  for (const std::string& name : names) {
    next_number_ = std::max(next_number_, NumberInName(name).value_or(0) + 1);
  }
  for (const std::uint64_t number : ManifestNumbers(names)) {
    if (!result.checkpoint || number > result.checkpoint->manifest.number) continue;
    try {
      kept_.push_back(ReadManifest(files_, folder_, ManifestName(number)));
    } catch (const Error&) {
      // Older than the one in use and damaged: the next save removes it.
    }
  }
  if (result.checkpoint) Remember(result.checkpoint->manifest);
  FindLeftovers(names);
  loaded_ = true;
  return result;
}

// Lists the files that an earlier process wrote for a save that it did not finish. Lists none if a
// manifest is damaged: its files may still be of use, and the next save removes them anyway.
void CheckpointStore::FindLeftovers(const std::vector<std::string>& names) {
  leftovers_.clear();
  if (ManifestNumbers(names).size() != kept_.size()) return;
  const std::set<std::string> needed = NeededFiles();
  for (const std::string& name : names) {
    if (NumberInName(name) && !needed.contains(name)) leftovers_.push_back(name);
  }
}

void CheckpointStore::Remember(const Manifest& manifest) {
  stored_.clear();
  for (const auto& [name, stream] : manifest.streams) stored_[name] = stream.segments;
}

std::uint64_t CheckpointStore::GridOf(std::uint64_t record_bytes) const {
  UPER_CHECK(record_bytes >= 1 && record_bytes <= kMaxSegmentBytes, "size of a record");
  const std::uint64_t fitting = std::max<std::uint64_t>(1, options_.segment_bytes / record_bytes);
  return std::min(std::bit_floor(fitting), options_.segment_records);
}

bool CheckpointStore::IsThere(const ManifestFile& file) const {
  std::uint64_t bytes = 0;
  return files_.Size(folder_ / file.name, &bytes) == 0 && bytes == file.bytes;
}

int CheckpointStore::MakeFolder() {
  const int error = RepeatInterrupted([&] { return files_.MakeFolder(folder_); });
  if (error != 0 || !kept_.empty()) return error;
  // The name of a new folder must be durable too.
  const fs::path parent = folder_.has_parent_path() ? folder_.parent_path() : ".";
  return RepeatInterrupted([&] { return files_.SyncFolder(parent); });
}

int CheckpointStore::SyncFolder() {
  return RepeatInterrupted([&] { return files_.SyncFolder(folder_); });
}

// A stored segment of the same grid cell that holds [begin, end).
const ManifestSegment* CheckpointStore::FindStored(const std::string& stream,
                                                   std::uint64_t cell_begin, std::uint64_t begin,
                                                   std::uint64_t end) const {
  const auto found = stored_.find(stream);
  if (found == stored_.end()) return nullptr;
  for (const ManifestSegment& segment : found->second) {
    const bool fits = segment.end == end && segment.begin >= cell_begin && segment.begin <= begin;
    if (fits && IsThere(segment.file)) return &segment;
  }
  return nullptr;
}

PreparedSave::Stream CheckpointStore::PrepareStream(const std::string& name,
                                                    const RecordStream& stream) const {
  UPER_CHECK(IsPartName(name) && stream.first_id <= stream.next_id, "stream '" + name + "'");
  const std::uint64_t grid = GridOf(stream.record_bytes);
  PreparedSave::Stream prepared{
      .record_bytes = stream.record_bytes, .first_id = stream.first_id, .next_id = stream.next_id};
  for (std::uint64_t begin = stream.first_id; begin < stream.next_id;) {
    const std::uint64_t cell_begin = begin / grid * grid;
    const std::uint64_t end = std::min(cell_begin + grid, stream.next_id);
    if (const ManifestSegment* stored = FindStored(name, cell_begin, begin, end)) {
      prepared.stored.push_back(*stored);
    } else {
      std::vector<std::byte> raw((end - begin) * stream.record_bytes);
      stream.read(begin, end, raw);
      prepared.fresh.push_back({.begin = begin, .end = end, .raw = std::move(raw)});
    }
    begin = end;
  }
  return prepared;
}

PreparedSave CheckpointStore::Prepare(const CheckpointContent& content) const {
  PreparedSave save;
  Prepare(content, save);
  return save;
}

void CheckpointStore::Prepare(const CheckpointContent& content, PreparedSave& save) const {
  UPER_CHECK(loaded_, "Load() comes first");
  save.info = content.info;
  save.document = content.document.dump();
  save.sync_outside = content.sync_outside;
  std::erase_if(save.tensors,
                [&](const auto& entry) { return !content.tensors.contains(entry.first); });
  for (const auto& [name, tensors] : content.tensors) {
    UPER_CHECK(IsPartName(name), "tensor file '" + name + "'");
    EncodeSafetensors(tensors, save.tensors[name]);
  }
  save.streams.clear();
  for (const auto& [name, stream] : content.streams) {
    save.streams[name] = PrepareStream(name, stream);
  }
}

std::optional<PreparedAhead> CheckpointStore::PrepareAhead(
    const std::map<std::string, RecordStream>& streams) {
  UPER_CHECK(loaded_, "Load() comes first");
  for (const auto& [name, stream] : streams) {
    const std::uint64_t grid = GridOf(stream.record_bytes);
    std::uint64_t begin = std::max(ahead_[name], stream.first_id);
    while (begin / grid * grid + grid <= stream.next_id) {
      const std::uint64_t cell_begin = begin / grid * grid;
      const std::uint64_t end = cell_begin + grid;
      if (FindStored(name, cell_begin, begin, end) == nullptr) {
        std::vector<std::byte> raw((end - begin) * stream.record_bytes);
        stream.read(begin, end, raw);
        return PreparedAhead{.stream = name,
                             .segment = {.begin = begin, .end = end, .raw = std::move(raw)},
                             .first_ids = FirstIds(streams)};
      }
      ahead_[name] = begin = end;
    }
  }
  return std::nullopt;
}

SaveOutcome CheckpointStore::PublishAhead(const PreparedAhead& ahead) {
  if (const int error = MakeFolder()) return Failed("create the folder", error);
  RemoveDeadSegments(ahead.first_ids);  // first: the new one may need their space
  if (const auto lack = LackOfSpace(0, ahead.segment.raw.size())) return *lack;
  PublishJob job{*this};
  ManifestSegment entry;
  const int error = job.WriteSegment(ahead.stream, ahead.segment, &entry);
  if (error != 0) return Failed("write " + ahead.stream, error);
  stored_[ahead.stream].push_back(entry);
  ahead_[ahead.stream] = ahead.segment.end;
  return {.saved = true, .bytes_written = job.bytes};
}

SaveOutcome CheckpointStore::WriteAhead(const std::map<std::string, RecordStream>& streams) {
  SaveOutcome total{.saved = true};
  while (const std::optional<PreparedAhead> ahead = PrepareAhead(streams)) {
    const SaveOutcome outcome = PublishAhead(*ahead);
    if (!outcome.saved) return outcome;
    total.bytes_written += outcome.bytes_written;
  }
  return total;
}

// Fails if the disk has less space than the tensors and records will take (assuming the compression
// of earlier ones). A disk that does not report its space counts as empty.
std::optional<SaveOutcome> CheckpointStore::LackOfSpace(std::uint64_t plain_bytes,
                                                        std::uint64_t record_bytes) const {
  const double share =
      raw_bytes_ == 0 ? 1
                      : static_cast<double>(compressed_bytes_) / static_cast<double>(raw_bytes_);
  const double needed =
      static_cast<double>(plain_bytes) + share * static_cast<double>(record_bytes);
  std::uint64_t free = 0;
  if (files_.FreeBytes(folder_, &free) != 0 || static_cast<double>(free) >= needed) return {};
  return SaveOutcome{.disk_full = true,
                     .problem = "the save takes about " +
                                std::to_string(static_cast<std::uint64_t>(needed) >> 20) +
                                " MiB, the disk of " + folder_.string() + " has " +
                                std::to_string(free >> 20) + " MiB left"};
}

SaveOutcome CheckpointStore::Publish(const PreparedSave& save) {
  UPER_CHECK(loaded_, "Load() comes first");
  if (const int error = MakeFolder()) return Failed("create the folder", error);
  std::uint64_t plain_bytes = save.document.size();
  std::uint64_t record_bytes = 0;
  for (const auto& [name, file] : save.tensors) plain_bytes += file.size();
  for (const auto& [name, stream] : save.streams) {
    for (const PreparedSave::Segment& segment : stream.fresh) record_bytes += segment.raw.size();
  }
  if (const auto lack = LackOfSpace(plain_bytes, record_bytes)) return *lack;
  const std::string outside = save.sync_outside ? save.sync_outside() : "";
  Manifest manifest{.number = next_number_, .info = save.info};
  for (std::size_t i = 0; i < std::min(kept_.size(), options_.keep - 1); ++i) {
    manifest.previous.push_back(kept_[i].number);
  }
  PublishJob job{*this};
  int error = job.WriteParts(save, &manifest);
  if (error == 0) error = SyncFolder();
  if (error == 0) error = job.PublishManifest(manifest);
  if (error != 0) {
    job.RemoveWritten(manifest);
    return Failed("write to " + folder_.string(), error);
  }

  ++next_number_;
  Remember(manifest);
  kept_.insert(kept_.begin(), std::move(manifest));
  SaveOutcome outcome{.saved = true,
                      .number = kept_.front().number,
                      .bytes_written = job.bytes,
                      .problem = outside};
  if (const int sync_error = SyncFolder()) {
    // The manifest exists, but a crash of the machine may undo the rename: older checkpoints must
    // stay.
    outcome.problem = Failed("make the checkpoint durable", sync_error).problem;
    return outcome;
  }
  kept_.resize(std::min(kept_.size(), options_.keep));
  WriteMarker();
  Prune();
  return outcome;
}

// Not essential, so the next save retries a failure.
void CheckpointStore::WriteMarker() {
  std::uint64_t bytes = 0;
  const fs::path marker = folder_ / kMarkerName;
  if (files_.Size(marker, &bytes) == 0) return;
  const fs::path temporary = folder_ / (std::string(kMarkerName) + kTemporary);
  const std::string text = kMarkerText;
  if (WriteDurably(files_, temporary, BytesOfText(text)) != 0) return;
  if (files_.Rename(temporary, marker) != 0) files_.Remove(temporary);
}

// The files that kept checkpoints need.
std::set<std::string> CheckpointStore::NeededFiles() const {
  std::set<std::string> needed;
  for (const Manifest& manifest : kept_) {
    needed.insert(ManifestName(manifest.number));
    for (const ManifestFile& file : manifest.Files()) needed.insert(file.name);
  }
  return needed;
}

// Removes segments written ahead that no save can need any more, and the files of an earlier
// process. The next save retries a failed removal.
void CheckpointStore::RemoveDeadSegments(const std::map<std::string, std::uint64_t>& first_ids) {
  for (const std::string& name : leftovers_) files_.Remove(folder_ / name);
  leftovers_.clear();
  const std::set<std::string> needed = NeededFiles();
  for (const auto& [stream, first_id] : first_ids) {
    std::erase_if(stored_[stream], [&, first_id = first_id](const ManifestSegment& segment) {
      if (segment.end > first_id || needed.contains(segment.file.name)) return false;
      files_.Remove(folder_ / segment.file.name);
      return true;
    });
  }
}

// Removes the files that no kept checkpoint needs. Manifests go first and durably: a manifest whose
// files are gone would look like a damaged checkpoint.
void CheckpointStore::Prune() {
  const std::set<std::string> needed = NeededFiles();
  std::vector<std::string> names;
  if (files_.List(folder_, &names) != 0) return;
  std::erase_if(
      names, [&](const std::string& name) { return !NumberInName(name) || needed.contains(name); });
  bool removed_all = true;
  for (const std::string& name : names) {
    if (IsManifestName(name)) removed_all = files_.Remove(folder_ / name) == 0 && removed_all;
  }
  if (!removed_all || SyncFolder() != 0) return;
  for (const std::string& name : names) {
    if (!IsManifestName(name)) files_.Remove(folder_ / name);
  }
}

}  // namespace uper::checkpoint
