#include "uper/checkpoint/checkpoint_manifest.h"

#include <algorithm>
#include <charconv>

#include "uper/base/check.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/checkpoint/checksum.h"

namespace uper::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "uper checkpoint";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kNumberDigits = 8;
constexpr std::size_t kMaxNameBytes = 200;

std::string Padded(std::uint64_t value, std::size_t digits) {
  const std::string text = std::to_string(value);
  return std::string(digits > text.size() ? digits - text.size() : 0, '0') + text;
}

json ToJson(const ManifestFile& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.checksum}};
}

json ToJson(const ManifestStream& stream) {
  json segments = json::array();
  for (const ManifestSegment& segment : stream.segments) {
    json entry = ToJson(segment.file);
    entry["begin"] = segment.begin;
    entry["end"] = segment.end;
    segments.push_back(std::move(entry));
  }
  return {{"record_bytes", stream.record_bytes},
          {"first_id", stream.first_id},
          {"next_id", stream.next_id},
          {"segments", std::move(segments)}};
}

json ToJson(const Manifest& manifest) {
  json content = {{"format", kFormat},         {"version", kVersion},
                  {"number", manifest.number}, {"previous", manifest.previous},
                  {"info", manifest.info},     {"document", ToJson(manifest.document)},
                  {"tensors", json::object()}, {"streams", json::object()}};
  for (const auto& [name, file] : manifest.tensors) content["tensors"][name] = ToJson(file);
  for (const auto& [name, stream] : manifest.streams) content["streams"][name] = ToJson(stream);
  return content;
}

std::string Encode(const json& content) {
  const std::string text = content.dump(1);
  const std::string checksum = ChecksumOf(std::as_bytes(std::span(text)));
  return "{\"checksum\": \"" + checksum + "\",\n\"content\": " + text + "}\n";
}

// Reads the parts; every Fail names the manifest.
class Reader {
 public:
  explicit Reader(const std::string& what) : what_(what) {}

  Manifest Read(const json& content) const {
    if (Get<std::string>(content, "format") != kFormat) Fail("is not a checkpoint's manifest");
    const auto version = Get<std::uint64_t>(content, "version");
    if (version != kVersion) {
      Fail("has format " + std::to_string(version) + ", this program reads format " +
           std::to_string(kVersion) + "; use the version of uper that wrote it");
    }
    Manifest manifest{.number = Get<std::uint64_t>(content, "number"),
                      .info = Get<json>(content, "info"),
                      .document = ReadFile(Get<json>(content, "document"))};
    for (const json& number : Array(content, "previous")) {
      if (!number.is_number_unsigned()) Fail("names a previous one that is no number");
      manifest.previous.push_back(number.get<std::uint64_t>());
    }
    const json tensors = Object(content, "tensors");
    for (const auto& [name, file] : tensors.items()) {
      manifest.tensors[CheckedPart(name)] = ReadFile(file);
    }
    const json streams = Object(content, "streams");
    for (const auto& [name, stream] : streams.items()) {
      manifest.streams[CheckedPart(name)] = ReadStream(stream);
    }
    return manifest;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorKind::kCorrupt, what_ + " " + reason);
  }

  template <typename T>
  T Get(const json& object, const char* key) const {
    return JsonMember<T>(object, key, what_);
  }
  json Array(const json& object, const char* key) const {
    json array = Get<json>(object, key);
    if (!array.is_array()) Fail(std::string("has no proper '") + key + "'");
    return array;
  }
  json Object(const json& object, const char* key) const {
    json inner = Get<json>(object, key);
    if (!inner.is_object()) Fail(std::string("has no proper '") + key + "'");
    return inner;
  }

  std::string CheckedPart(const std::string& name) const {
    if (!IsPartName(name)) Fail("holds a name that is not valid");
    return name;
  }

  ManifestFile ReadFile(const json& entry) const {
    ManifestFile file{.name = Get<std::string>(entry, "name"),
                      .bytes = Get<std::uint64_t>(entry, "bytes"),
                      .checksum = Get<std::string>(entry, "xxh3_128")};
    // A file name and nothing else: nothing outside the folder can be named.
    const bool plain = std::all_of(file.name.begin(), file.name.end(), [](unsigned char c) {
      return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_' || c == '.';
    });
    if (!plain || file.name.size() > kMaxNameBytes || !NumberInName(file.name)) {
      Fail("holds a file name that is not valid");
    }
    return file;
  }

  ManifestStream ReadStream(const json& entry) const {
    ManifestStream stream{.record_bytes = Get<std::uint64_t>(entry, "record_bytes"),
                          .first_id = Get<std::uint64_t>(entry, "first_id"),
                          .next_id = Get<std::uint64_t>(entry, "next_id")};
    for (const json& segment : Array(entry, "segments")) {
      stream.segments.push_back({.file = ReadFile(segment),
                                 .begin = Get<std::uint64_t>(segment, "begin"),
                                 .end = Get<std::uint64_t>(segment, "end")});
    }
    CheckStream(stream);
    return stream;
  }

  void CheckStream(const ManifestStream& stream) const {
    const auto& segments = stream.segments;
    const bool empty = stream.first_id == stream.next_id;
    bool sound = stream.record_bytes >= 1 && stream.record_bytes <= kMaxSegmentBytes &&
                 stream.first_id <= stream.next_id && segments.empty() == empty;
    for (std::size_t i = 0; sound && i < segments.size(); ++i) {
      const auto [begin, end] = std::pair(segments[i].begin, segments[i].end);
      const bool follows = i == 0 ? begin <= stream.first_id : begin == segments[i - 1].end;
      sound = follows && begin < end && end > stream.first_id &&
              end - begin <= kMaxSegmentBytes / stream.record_bytes;
    }
    if (!sound || (!empty && segments.back().end != stream.next_id)) {
      Fail("has a stream whose segments do not fit together");
    }
  }

  const std::string& what_;
};

}  // namespace

std::vector<ManifestFile> Manifest::Files() const {
  std::vector<ManifestFile> files = {document};
  for (const auto& [name, file] : tensors) files.push_back(file);
  for (const auto& [name, stream] : streams) {
    for (const ManifestSegment& segment : stream.segments) files.push_back(segment.file);
  }
  return files;
}

std::string EncodeManifest(const Manifest& manifest) { return Encode(ToJson(manifest)); }

Manifest ParseManifest(const std::string& text, const std::string& what) {
  const json file = ParseJson(text, {}, what);
  const json content = JsonMember<json>(file, "content", what);
  if (Encode(content) != text) {
    throw Error(ErrorKind::kCorrupt, what + " is damaged: its checksum does not match");
  }
  return Reader(what).Read(content);
}

std::string NumberedName(const std::string& stem, std::uint64_t number,
                         const std::string& extension) {
  return stem + "-" + Padded(number, kNumberDigits) + "." + extension;
}

std::string ManifestName(std::uint64_t number) { return NumberedName("manifest", number, "json"); }

std::string SegmentName(const std::string& stream, std::uint64_t begin, std::uint64_t end,
                        std::uint64_t number) {
  return NumberedName(stream + "-" + Padded(begin, 12) + "-" + Padded(end, 12), number, "zst");
}

std::optional<std::uint64_t> NumberInName(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  const std::size_t dot = name.find('.', dash == std::string::npos ? 0 : dash);
  if (dash == std::string::npos || dash == 0 || dot == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const begin = name.data() + dash + 1;
  const char* const end = name.data() + dot;
  const auto result = std::from_chars(begin, end, number);
  const bool valid = result.ec == std::errc() && result.ptr == end &&
                     static_cast<std::size_t>(end - begin) >= kNumberDigits;
  return valid ? std::optional(number) : std::nullopt;
}

bool IsManifestName(const std::string& name) {
  const auto number = NumberInName(name);
  return number && name == ManifestName(*number);
}

bool IsPartName(const std::string& name) {
  return !name.empty() && name.size() <= 40 && name != "manifest" && name != "state" &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

}  // namespace uper::checkpoint
