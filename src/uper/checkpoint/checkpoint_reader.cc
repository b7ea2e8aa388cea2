#include "uper/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "uper/base/error.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/checkpoint/checksum.h"
#include "uper/checkpoint/segment_codec.h"

namespace uper::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kDocumentLimits{.bytes = std::size_t{64} << 20, .values = 4'000'000};

[[noreturn]] void Fail(const std::string& name, const std::string& reason) {
  throw Error(ErrorKind::kCorrupt, name + ": " + reason);
}

std::string ReasonFor(int error) {
  if (error == ENOENT) return "the file is missing";
  if (error == EFBIG) return "the file is longer than it should be";
  return std::string("the file cannot be read (") + std::strerror(error) + ")";
}

// The live part of a segment's records.
struct LiveRange {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t offset_bytes;
};

LiveRange LivePart(const ManifestStream& stream, const ManifestSegment& segment) {
  const std::uint64_t begin = std::max(segment.begin, stream.first_id);
  return {begin, segment.end, (begin - segment.begin) * stream.record_bytes};
}

// Describes files that are newer than the newest manifest. Their save was interrupted, or their
// manifest was lost.
std::string NoteOnLeftovers(const std::vector<std::string>& names, std::uint64_t newest) {
  std::size_t count = 0;
  for (const std::string& name : names) count += NumberInName(name).value_or(0) > newest ? 1 : 0;
  if (count == 0) return "";
  return std::to_string(count) + " files of a save that was not completed are ignored";
}

std::string NoteOnPrevious(const Manifest& manifest, const std::vector<std::string>& names) {
  for (const std::uint64_t number : manifest.previous) {
    const bool there = std::find(names.begin(), names.end(), ManifestName(number)) != names.end();
    if (!there) {
      return ManifestName(number) + " is missing, or one newer than " +
             ManifestName(manifest.number) + " was removed";
    }
  }
  return "";
}

[[noreturn]] void ThrowNoneLoads(const fs::path& folder, const std::string& reasons) {
  throw Error(ErrorKind::kCorrupt,
              "no checkpoint in " + folder.string() + " can be loaded: " + reasons +
                  "; restore the files from a copy, or start another run with --out");
}

}  // namespace

const TensorMap& LoadedCheckpoint::Tensors(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) Fail(ManifestName(manifest.number), "has no tensors '" + name + "'");
  return found->second.tensors;
}

const ManifestStream& LoadedCheckpoint::Stream(const std::string& name) const {
  const auto found = manifest.streams.find(name);
  if (found == manifest.streams.end()) {
    Fail(ManifestName(manifest.number), "has no stream '" + name + "'");
  }
  return found->second;
}

void LoadedCheckpoint::ReadStream(const std::string& name, const RecordSink& sink) const {
  const ManifestStream& stream = Stream(name);
  std::vector<std::byte> raw;
  for (const ManifestSegment& segment : stream.segments) {
    const std::vector<std::byte> frame = ReadVerified(*files, folder, segment.file);
    raw.resize((segment.end - segment.begin) * stream.record_bytes);
    DecompressSegment(frame, raw, segment.file.name);
    const LiveRange live = LivePart(stream, segment);
    sink(live.begin, live.end, std::span(raw).subspan(live.offset_bytes));
  }
}

std::string LoadedCheckpoint::StreamHash(const std::string& name) const {
  Checksummer checksummer;
  ReadStream(name, [&](std::uint64_t, std::uint64_t, std::span<const std::byte> records) {
    checksummer.Add(records);
  });
  return checksummer.Value();
}

std::string ProblemWith(const ManifestFile& file, std::span<const std::byte> bytes) {
  if (bytes.size() != file.bytes) {
    return "has " + std::to_string(bytes.size()) + " bytes instead of " +
           std::to_string(file.bytes);
  }
  return ChecksumOf(bytes) == file.checksum ? "" : "is damaged: its checksum does not match";
}

std::vector<std::byte> ReadVerified(FileSystem& files, const fs::path& folder,
                                    const ManifestFile& file) {
  std::vector<std::byte> bytes;
  const int error = files.Read(folder / file.name, file.bytes, &bytes);
  if (error != 0) Fail(file.name, ReasonFor(error));
  const std::string problem = ProblemWith(file, bytes);
  if (!problem.empty()) Fail(file.name, problem);
  return bytes;
}

Manifest ReadManifest(FileSystem& files, const fs::path& folder, const std::string& name) {
  std::vector<std::byte> bytes;
  const int error = files.Read(folder / name, JsonLimits{}.bytes, &bytes);
  if (error != 0) Fail(name, ReasonFor(error));
  Manifest manifest = ParseManifest(TextOfBytes(bytes), name);
  if (name != ManifestName(manifest.number)) Fail(name, "is the manifest of another checkpoint");
  return manifest;
}

LoadedCheckpoint LoadCheckpoint(FileSystem& files, const fs::path& folder,
                                const Manifest& manifest) {
  LoadedCheckpoint loaded;
  loaded.manifest = manifest;
  loaded.folder = folder;
  loaded.files = &files;
  // Large files are only checked here; they are read again when they are needed.
  for (const auto& [name, stream] : manifest.streams) {
    for (const ManifestSegment& segment : stream.segments) {
      ReadVerified(files, folder, segment.file);
    }
  }
  for (const auto& [name, file] : manifest.tensors) {
    LoadedTensors& part = loaded.tensors[name];
    part.file = ReadVerified(files, folder, file);
    part.tensors = ParseSafetensors(part.file, file.name);
  }
  const ManifestFile& document = manifest.document;
  loaded.document =
      ParseJson(TextOfBytes(ReadVerified(files, folder, document)), kDocumentLimits, document.name);
  return loaded;
}

std::vector<std::string> ListCheckpoints(FileSystem& files, const fs::path& folder) {
  std::vector<std::string> names;
  const int error = files.List(folder, &names);
  if (error != 0 && error != ENOENT) {
    throw Error(ErrorKind::kUsage,
                "cannot read folder " + folder.string() + ": " + std::strerror(error));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::uint64_t> ManifestNumbers(const std::vector<std::string>& names) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (IsManifestName(name)) numbers.push_back(*NumberInName(name));
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

LoadResult LoadNewestCheckpoint(const fs::path& folder, FileSystem& files) {
  const std::vector<std::string> names = ListCheckpoints(files, folder);
  const std::vector<std::uint64_t> numbers = ManifestNumbers(names);
  LoadResult result;
  std::string reasons;
  for (const std::uint64_t number : numbers) {
    try {
      const Manifest manifest = ReadManifest(files, folder, ManifestName(number));
      result.checkpoint = LoadCheckpoint(files, folder, manifest);
      result.notes.push_back(reasons.empty() ? NoteOnPrevious(manifest, names)
                                             : "using checkpoint " + std::to_string(number) +
                                                   ", an older one, because of " + reasons);
      break;
    } catch (const Error& error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string("checkpoint ") +
                 std::to_string(number) + ": " + error.what();
    }
  }
  if (!result.checkpoint && !numbers.empty()) ThrowNoneLoads(folder, reasons);
  const bool marked = std::find(names.begin(), names.end(), kMarkerName) != names.end();
  if (numbers.empty() && marked) ThrowNoneLoads(folder, "every manifest is missing");
  result.notes.push_back(NoteOnLeftovers(names, numbers.empty() ? 0 : numbers.front()));
  std::erase(result.notes, "");
  return result;
}

}  // namespace uper::checkpoint
