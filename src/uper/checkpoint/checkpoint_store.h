#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "uper/checkpoint/checkpoint_content.h"
#include "uper/checkpoint/checkpoint_manifest.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/checkpoint/file_system.h"

namespace uper::checkpoint {

struct CheckpointStoreOptions {
  std::size_t keep = 2;                                   // checkpoints, at least 1
  int compression_level = 1;                              // zstd's
  std::uint64_t segment_bytes = std::uint64_t{32} << 20;  // largest segment before compression
  std::uint64_t segment_records = 16'384;                 // most records per segment
};

// Everything a save will write, copied: independent of the trainer's own memory.
struct PreparedSave {
  struct Segment {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::byte> raw;
  };
  struct Stream {
    std::uint64_t record_bytes = 0;
    std::uint64_t first_id = 0;
    std::uint64_t next_id = 0;
    std::vector<ManifestSegment> stored;  // by earlier saves
    std::vector<Segment> fresh;
  };

  nlohmann::json info;
  std::string document;
  std::map<std::string, std::vector<std::byte>> tensors;  // as files
  std::map<std::string, Stream> streams;
  std::function<std::string()> sync_outside;
};

// A segment to be written before the save that needs it.
struct PreparedAhead {
  std::string stream;
  PreparedSave::Segment segment;
  std::map<std::string, std::uint64_t> first_ids;  // by stream: the oldest live record
};

// The result of a save.
struct SaveOutcome {
  bool saved = false;
  std::uint64_t number = 0;  // of the checkpoint, if saved
  std::uint64_t bytes_written = 0;
  bool disk_full = false;
  std::string problem;  // why it was not saved, or (saved) what could not be done afterwards

  // Throws Error(kResources) if the disk is full, else Error(kUsage), unless it was saved.
  void ThrowIfFailed() const;
};

// The folder checkpoints/ of a run.
//
// A save writes files under new names, makes them durable, and publishes them by renaming a
// manifest into place. Only then it removes older checkpoints and the files that no kept manifest
// names (manifests first). So at every moment, whatever fails, the newest manifest that verifies is
// a whole checkpoint.
//
// Record streams are kept as segments: ranges of ids on a fixed grid, written once and shared by
// all checkpoints that need them. A save writes the ranges that are new and the unfinished last
// one.
//
// Use: Load() once, then Prepare and Publish (or Save) for each save, and between two saves
// PrepareAhead and PublishAhead (or WriteAhead). PublishAhead also removes segments written ahead
// whose records have all left the replay memory, so rare saves do not fill the disk. Only the
// Prepare functions read the trainer's memory, and they copy what they need. The Publish functions
// may run on another thread, but no other call may come between the two (checkpoint_writer.h).
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path folder, CheckpointStoreOptions options = {},
                           FileSystem& files = PosixFileSystem());

  // Loads the newest checkpoint that verifies, or nothing if none was ever saved here. Throws
  // Error(kCorrupt) naming files and reasons if there are checkpoints but none can be loaded.
  LoadResult Load();

  // The first segment that is complete and not stored yet, so that a later save has less to do;
  // nothing if there is none. O(1) when there is none.
  std::optional<PreparedAhead> PrepareAhead(const std::map<std::string, RecordStream>& streams);
  // Reports a failure; the next PrepareAhead or Prepare prepares the segment again.
  SaveOutcome PublishAhead(const PreparedAhead& ahead);
  // Prepares and publishes all such segments.
  SaveOutcome WriteAhead(const std::map<std::string, RecordStream>& streams);

  // Prepares into the memory of an earlier save, so that large saves need no new pages.
  void Prepare(const CheckpointContent& content, PreparedSave& save) const;
  PreparedSave Prepare(const CheckpointContent& content) const;
  // File system failures do not throw: see SaveOutcome. A failed save removes its files and leaves
  // the older checkpoints as they were. If the free space is less than the save will probably take,
  // the disk counts as full before anything is written.
  SaveOutcome Publish(const PreparedSave& save);
  SaveOutcome Save(const CheckpointContent& content) { return Publish(Prepare(content)); }

 private:
  struct PublishJob;

  std::uint64_t GridOf(std::uint64_t record_bytes) const;
  PreparedSave::Stream PrepareStream(const std::string& name, const RecordStream& stream) const;
  const ManifestSegment* FindStored(const std::string& stream, std::uint64_t cell_begin,
                                    std::uint64_t begin, std::uint64_t end) const;
  bool IsThere(const ManifestFile& file) const;
  std::optional<SaveOutcome> LackOfSpace(std::uint64_t plain_bytes,
                                         std::uint64_t record_bytes) const;
  int MakeFolder();
  int SyncFolder();
  void Remember(const Manifest& manifest);
  void WriteMarker();
  void FindLeftovers(const std::vector<std::string>& names);
  std::set<std::string> NeededFiles() const;
  void Prune();
  void RemoveDeadSegments(const std::map<std::string, std::uint64_t>& first_ids);

  const std::filesystem::path folder_;
  const CheckpointStoreOptions options_;
  FileSystem& files_;

  bool loaded_ = false;
  std::uint64_t next_number_ = 1;
  std::vector<Manifest> kept_;  // undamaged ones, newest first
  // Segments that may be reused: those of the newest checkpoint, and those written ahead.
  std::map<std::string, std::vector<ManifestSegment>> stored_;
  std::map<std::string, std::uint64_t> ahead_;  // by stream: records before it are stored
  std::vector<std::string> leftovers_;          // unneeded files of an earlier process
  // Sizes of all records so far, before and after compression.
  std::uint64_t raw_bytes_ = 0;
  std::uint64_t compressed_bytes_ = 0;
};

}  // namespace uper::checkpoint
