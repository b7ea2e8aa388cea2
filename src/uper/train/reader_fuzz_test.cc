// Every reader of files gets thousands of damaged ones: it may refuse them with an Error, and
// nothing else. The number of bytes it asks for at once is bounded.

#include <gtest/gtest.h>

#include <functional>

#include "uper/base/random.h"
#include "uper/train/bounded_json.h"
#include "uper/train/checkpoint_example.h"
#include "uper/train/checkpoint_verify.h"
#include "uper/train/checksum.h"
#include "uper/train/config_io.h"
#include "uper/train/event_encoder.h"
#include "uper/train/fault_file_system.h"
#include "uper/train/largest_allocation.h"
#include "uper/train/run_lock.h"
#include "uper/train/segment_codec.h"
#include "uper/train/test_support.h"

namespace uper {
namespace {

constexpr int kMutations = 3000 / kStride;

// The text with a few bytes changed, removed, repeated or replaced by something provocative.
std::string Mutated(std::string text, RandomStream& random) {
  static const std::string tokens[] = {"18446744073709551615",
                                       "-1",
                                       "1e308",
                                       "[[[[",
                                       "{\"a\":",
                                       "null",
                                       "\"\"",
                                       "\\u0000",
                                       std::string(8, '\xff'),
                                       std::string(8, '\0'),
                                       "9223372036854775807"};
  const std::uint64_t edits = 1 + random.UniformInt(4);
  for (std::uint64_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = random.UniformInt(text.size());
    const std::size_t length = random.UniformInt(std::min<std::size_t>(text.size() - at, 40) + 1);
    switch (random.UniformInt(5)) {
      case 0:
        text[at] = static_cast<char>(random.NextUint32());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.append(text.substr(at, length));
        break;
      case 3:
        text.replace(at, length, tokens[random.UniformInt(std::size(tokens))]);
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

// Feeds mutations to the reader; returns how many it refused.
int Fuzz(const std::string& seed, const std::function<void(const std::string&)>& read,
         std::size_t memory_limit = std::size_t{16} << 20) {
  RandomStream random(1, "fuzz");
  read(seed);  // the original is accepted
  int refused = 0;
  largest_allocation = 0;
  for (int i = 0; i < kMutations; ++i) {
    std::string text = Mutated(seed, random);
    while (text == seed) text = Mutated(seed, random);
    try {
      read(text);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(largest_allocation, 0u);  // it counts
  EXPECT_LE(largest_allocation, memory_limit);
  return refused;
}

std::string ExampleFile(const std::string& part) {
  FaultFileSystem files;
  SaveExamples(files, 3);
  for (const std::string& path : files.Paths()) {
    if (path.find(part) != std::string::npos) return TextOfBytes(files.Content(path));
  }
  ADD_FAILURE() << part;
  return "";
}

TEST(ReaderFuzzTest, Json) {
  EXPECT_GT(Fuzz(ExampleFile("state-"), [](const std::string& text) { ParseJson(text, {}, "F"); }),
            kMutations / 2);
}

TEST(ReaderFuzzTest, Manifest) {
  EXPECT_EQ(
      Fuzz(ExampleFile("manifest-"), [](const std::string& text) { ParseManifest(text, "F"); }),
      kMutations);
}

// As if the attacker had computed the checksum.
TEST(ReaderFuzzTest, ManifestContentBehindAValidChecksum) {
  const std::string file = ExampleFile("manifest-");
  const std::size_t begin = file.find("\"content\": ") + 11;
  const std::string content = file.substr(begin, file.size() - begin - 2);
  const int refused = Fuzz(content, [](const std::string& text) {
    std::string canonical;
    try {
      canonical = nlohmann::json::parse(text).dump(1);
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorKind::kCorrupt, "not JSON");
    }
    ParseManifest("{\"checksum\": \"" + ChecksumOf(BytesOfText(canonical)) +
                      "\",\n\"content\": " + canonical + "}\n",
                  "F");
  });
  EXPECT_GT(refused, kMutations / 2);
}

TEST(ReaderFuzzTest, Safetensors) {
  const int refused = Fuzz(ExampleFile("parameters-"), [](const std::string& text) {
    const TensorMap tensors = ParseSafetensors(BytesOfText(text), "F");
    for (const auto& [name, tensor] : tensors) {  // every byte can be touched
      for (const std::byte byte : tensor.bytes) EXPECT_LE(std::to_integer<int>(byte), 255);
    }
  });
  EXPECT_GT(refused, kMutations / 2);
}

TEST(ReaderFuzzTest, Segment) {
  std::vector<std::byte> raw(5000);
  for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i * i / 50);
  const std::string frame = TextOfBytes(CompressSegment(raw, 1));
  const int refused =
      Fuzz(frame, [&](const std::string& text) { DecompressSegment(BytesOfText(text), raw, "F"); });
  EXPECT_GT(refused, kMutations * 9 / 10);
}

TEST(ReaderFuzzTest, ConfigurationFile) {
  const int refused = Fuzz(DumpToml({}), [](const std::string& text) {
    RunConfig config;
    ApplyToml(config, text, "F");
  });
  EXPECT_GT(refused, kMutations / 5);  // much of the text is comments
}

TEST(ReaderFuzzTest, EventFile) {
  const std::vector<TaggedScalar> scalars = {{.tag = "a", .value = 1}};
  const std::string file =
      EventFileHeader(1) + ScalarEvent(2, 3, scalars) + ScalarEvent(4, 5, scalars);
  Fuzz(file, [](const std::string& text) { EXPECT_LE(WholeTfRecords(text), text.size()); });
}

TEST(ReaderFuzzTest, LockFile) {
  Fuzz(EncodeHolder(ThisHolder()), [](const std::string& text) { MayBeAlive(ParseHolder(text)); });
}

// A whole folder in which one file is mutated: never another content than one that was saved.
TEST(ReaderFuzzTest, CheckpointFolder) {
  FaultFileSystem files;
  SaveExamples(files, 4);
  files.Restart();
  RandomStream random(2, "fuzz");
  const std::vector<std::string> paths = files.Paths();
  for (int i = 0; i < kMutations; ++i) {
    const std::string& path = paths[random.UniformInt(paths.size())];
    const std::vector<std::byte> whole = files.Content(path);
    const std::string text = Mutated(TextOfBytes(whole), random);
    const auto bytes = BytesOfText(text);
    files.Content(path).assign(bytes.begin(), bytes.end());
    EXPECT_EQ(VerifyCheckpoints(kExampleFolder, files).good(), files.Content(path) == whole);
    try {
      const LoadResult result = LoadNewestCheckpoint(kExampleFolder, files);
      EXPECT_TRUE(IsExample(*result.checkpoint, StepOf(*result.checkpoint)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    }
    files.Content(path) = whole;
  }
}

}  // namespace
}  // namespace uper
