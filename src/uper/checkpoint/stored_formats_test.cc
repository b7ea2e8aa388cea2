// JSON within limits, checksums, segments, manifests.

#include <gtest/gtest.h>

#include "uper/base/files/files_for_tests.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/checkpoint/checkpoint_manifest.h"
#include "uper/checkpoint/checksum.h"
#include "uper/checkpoint/file_system.h"
#include "uper/checkpoint/segment_codec.h"

namespace uper::checkpoint {
namespace {

TEST(BoundedJsonTest, LimitsAreEnforced) {
  const JsonLimits limits{.bytes = 40, .values = 4, .depth = 2};
  const auto reason = [&](const std::string& text) {
    const Thrown thrown = Catch([&] { ParseJson(text, limits, "T"); });
    EXPECT_EQ(thrown.kind, ErrorKind::kCorrupt);
    return thrown.message;
  };
  EXPECT_EQ(ParseJson("[[1,2]]", limits, "T")[0][1], 2);
  EXPECT_EQ(reason("[[1,2,3]]"), "T holds too many values");
  EXPECT_EQ(reason("[[[]]]"), "T is nested too deeply");
  EXPECT_EQ(reason(std::string(41, ' ')), "T is too long");
  EXPECT_EQ(reason("{\"a\":1,\"a\":2}"), "T names the key 'a' twice");
  EXPECT_EQ(reason("[1"), "T is not JSON (at byte 3)");
  EXPECT_EQ(reason("[1e999]").substr(0, 13), "T is not JSON");
  EXPECT_EQ(reason("\"\xff\"").substr(0, 13), "T is not JSON");
  EXPECT_EQ(reason("1 2").substr(0, 13), "T is not JSON");
  // The same key in different objects is fine.
  EXPECT_NO_THROW(ParseJson("[{\"a\":1},{\"a\":2}]", {}, "T"));
}

TEST(BoundedJsonTest, DeepNestingTakesNoDeepStack) {
  EXPECT_EQ(Catch([] { ParseJson(std::string(10'000'000, '['), {}, "T"); }).kind,
            ErrorKind::kCorrupt);
}

TEST(BoundedJsonTest, MembersAreTyped) {
  const nlohmann::json object = {{"n", 1}, {"m", -1}, {"x", 0.5}, {"t", "t"}, {"b", true}};
  EXPECT_EQ(JsonMember<std::int64_t>(object, "m", "T"), -1);
  EXPECT_EQ(JsonMember<double>(object, "n", "T"), 1);
  EXPECT_EQ(JsonMember<std::string>(object, "t", "T"), "t");
  EXPECT_TRUE(JsonMember<bool>(object, "b", "T"));
  const nlohmann::json parsed = ParseJson("{\"n\":5,\"big\":18446744073709551615}", {}, "T");
  EXPECT_EQ(JsonMember<std::uint64_t>(parsed, "n", "T"), 5u);
  EXPECT_EQ(JsonMember<std::uint64_t>(parsed, "big", "T"), ~std::uint64_t{0});
  EXPECT_THROW(JsonMember<std::int64_t>(parsed, "big", "T"), Error);
  EXPECT_THROW(JsonMember<std::uint64_t>(object, "m", "T"), Error);
  EXPECT_THROW(JsonMember<std::uint64_t>(object, "x", "T"), Error);
  EXPECT_THROW(JsonMember<std::string>(object, "n", "T"), Error);
  EXPECT_THROW(JsonMember<bool>(object, "n", "T"), Error);
  EXPECT_EQ(Catch([&] { JsonMember<double>(object, "none", "T"); }).message,
            "T has no proper 'none'");
  EXPECT_THROW(JsonMember<double>(nlohmann::json::array(), "n", "T"), Error);
}

// Known answer of xxHash's own tests: XXH3-128 of nothing, seed 0.
TEST(ChecksumTest, KnownAnswerAndParts) {
  EXPECT_EQ(ChecksumOf({}), "99aa06d3014798d86001c324468d497f");
  const std::string text = "the same bytes in parts";
  Checksummer parts;
  parts.Add(BytesOfText(text).first(5));
  parts.Add({});
  parts.Add(BytesOfText(text).subspan(5));
  EXPECT_EQ(parts.Value(), ChecksumOf(BytesOfText(text)));
  EXPECT_NE(parts.Value(), ChecksumOf(BytesOfText(text).first(5)));
}

std::vector<std::byte> Raw(std::size_t bytes) {
  std::vector<std::byte> raw(bytes);
  for (std::size_t i = 0; i < bytes; ++i) raw[i] = static_cast<std::byte>(i / 7);
  return raw;
}

TEST(SegmentCodecTest, RoundTripAndCompression) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    const std::vector<std::byte> raw = Raw(bytes);
    const std::vector<std::byte> frame = CompressSegment(raw, 1);
    std::vector<std::byte> read(bytes);
    DecompressSegment(frame, read, "F");
    EXPECT_EQ(read, raw);
    if (bytes > 10000) {
      EXPECT_LT(frame.size(), bytes / 10);
    }
  }
}

TEST(SegmentCodecTest, OnlyOneWholeFrameOfTheRightSizeIsAccepted) {
  const std::vector<std::byte> frame = CompressSegment(Raw(1000), 1);
  const auto refused = [](std::vector<std::byte> bytes, std::size_t size) {
    std::vector<std::byte> raw(size);
    const Thrown thrown = Catch([&] { DecompressSegment(bytes, raw, "F"); });
    EXPECT_EQ(thrown.kind, ErrorKind::kCorrupt);
    EXPECT_TRUE(thrown.message.starts_with("F: "));
  };
  refused(frame, 999);
  refused(frame, 1001);
  refused({}, 1000);
  std::vector<std::byte> twice = frame;
  twice.insert(twice.end(), frame.begin(), frame.end());
  refused(twice, 1000);
  refused(twice, 2000);
  // A frame without content, which zstd itself skips.
  std::vector<std::byte> padded = frame;
  for (const int byte : {0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 0xAA}) {
    padded.push_back(static_cast<std::byte>(byte));
  }
  refused(padded, 1000);
  for (std::size_t length = 0; length < frame.size(); ++length) {
    refused({frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length)}, 1000);
  }
}

Manifest ExampleManifest() {
  Manifest manifest{.number = 7, .previous = {6}, .info = {{"frames", 5}}};
  manifest.document = {.name = "state-00000007.json", .bytes = 3, .checksum = "c"};
  manifest.tensors["parameters"] = {
      .name = "parameters-00000007.safetensors", .bytes = 8, .checksum = "d"};
  manifest.streams["frames"] = {.record_bytes = 10,
                                .first_id = 5,
                                .next_id = 20,
                                .segments = {{{SegmentName("frames", 0, 16, 6), 9, "e"}, 0, 16},
                                             {{SegmentName("frames", 16, 20, 7), 4, "f"}, 16, 20}}};
  manifest.streams["transitions"] = {.record_bytes = 1};
  return manifest;
}

TEST(ManifestTest, RoundTrip) {
  const std::string text = EncodeManifest(ExampleManifest());
  const Manifest read = ParseManifest(text, "M");
  EXPECT_EQ(EncodeManifest(read), text);
  EXPECT_EQ(read.number, 7u);
  EXPECT_EQ(read.previous, std::vector<std::uint64_t>{6});
  EXPECT_EQ(read.info["frames"], 5);
  EXPECT_EQ(read.document, ExampleManifest().document);
  EXPECT_EQ(read.streams, ExampleManifest().streams);
  EXPECT_EQ(read.Files().size(), 4u);
}

TEST(ManifestTest, EveryFlippedBitIsDetected) {
  const std::string text = EncodeManifest(ExampleManifest());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_EQ(Catch([&] { ParseManifest(damaged, "M"); }).kind, ErrorKind::kCorrupt) << i;
    }
  }
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(ParseManifest(text.substr(0, length), "M"), Error) << length;
  }
  EXPECT_THROW(ParseManifest(text + " ", "M"), Error);
}

// Manifests with a correct checksum and inconsistent content.
TEST(ManifestTest, InconsistentContentIsRefused) {
  const auto refused = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = ExampleManifest();
    change(manifest);
    return Catch([&] { ParseManifest(EncodeManifest(manifest), "M"); }).kind;
  };
  const std::function<void(Manifest&)> changes[] = {
      [](Manifest& m) { m.document.name = "../state-00000007.json"; },
      [](Manifest& m) { m.document.name = "/etc/x-00000007.json"; },
      [](Manifest& m) { m.document.name = "state.json"; },
      [](Manifest& m) { m.document.name = std::string(300, 'a') + "-00000007.json"; },
      [](Manifest& m) { m.tensors["Bad"] = m.document; },
      [](Manifest& m) { m.streams["frames"].record_bytes = 0; },
      [](Manifest& m) { m.streams["frames"].record_bytes = kMaxSegmentBytes; },
      [](Manifest& m) { m.streams["frames"].first_id = 16; },  // the first one is not needed
      [](Manifest& m) { m.streams["frames"].first_id = 21; },
      [](Manifest& m) { m.streams["frames"].next_id = 21; },
      [](Manifest& m) { m.streams["frames"].segments[1].begin = 17; },
      [](Manifest& m) { m.streams["frames"].segments[1].begin = 15; },
      [](Manifest& m) { m.streams["frames"].segments[0].begin = 6; },
      [](Manifest& m) { m.streams["frames"].segments.pop_back(); },
      [](Manifest& m) { m.streams["frames"].segments.clear(); },
      [](Manifest& m) { m.streams["transitions"].next_id = 1; },
  };
  for (const auto& change : changes) EXPECT_EQ(refused(change), ErrorKind::kCorrupt);
}

TEST(ManifestTest, AnotherFormatVersionIsNamed) {
  // Encoded by the same rules, as a later version would do.
  std::string text = EncodeManifest(ExampleManifest());
  const std::size_t at = text.find("\"version\": 1");
  ASSERT_NE(at, std::string::npos);
  std::string content = text.substr(text.find("\"content\": ") + 11);
  content = content.substr(0, content.size() - 2);
  content.replace(content.find("\"version\": 1"), 12, "\"version\": 2");
  text = "{\"checksum\": \"" + ChecksumOf(BytesOfText(content)) + "\",\n\"content\": " + content +
         "}\n";
  EXPECT_TRUE(
      Catch([&] { ParseManifest(text, "M"); }).Says("format 2, this program reads format 1"));
}

TEST(ManifestTest, Names) {
  EXPECT_EQ(ManifestName(3), "manifest-00000003.json");
  EXPECT_EQ(NumberInName("manifest-00000003.json"), 3u);
  EXPECT_EQ(NumberInName("manifest-00000003.json.tmp"), 3u);
  EXPECT_EQ(NumberInName(SegmentName("frames", 1, 2, 123456789)), 123456789u);
  for (const char* name : {"format", "a.json", "-00000001.json", "a-1.json", "a-0000000x.json",
                           "a-00000001", "a-99999999999999999999.x"}) {
    EXPECT_EQ(NumberInName(name), std::nullopt) << name;
  }
  EXPECT_TRUE(IsManifestName("manifest-00000003.json"));
  EXPECT_FALSE(IsManifestName("manifest-00000003.json.tmp"));
  EXPECT_FALSE(IsManifestName("manifest-000000003.json"));
  EXPECT_TRUE(IsPartName("replay_x"));
  for (const char* name : {"", "A", "a-b", "a.b", "manifest", "state"}) {
    EXPECT_FALSE(IsPartName(name)) << name;
  }
}

}  // namespace
}  // namespace uper::checkpoint
