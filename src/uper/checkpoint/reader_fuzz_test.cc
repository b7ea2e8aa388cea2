// Every reader of files gets thousands of damaged ones. It may accept them or throw an Error, and
// nothing else. The number of bytes that it allocates at once is bounded.

#include <gtest/gtest.h>

#include <functional>

#include "uper/base/files/files_for_tests.h"
#include "uper/base/random.h"
#include "uper/base/replace_new_for_tests.h"
#include "uper/checkpoint/bounded_json.h"
#include "uper/checkpoint/checkpoint_for_tests.h"
#include "uper/checkpoint/checkpoint_verify.h"
#include "uper/checkpoint/checksum.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"
#include "uper/checkpoint/mutations_for_tests.h"
#include "uper/checkpoint/segment_codec.h"

namespace uper::checkpoint {
namespace {

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

// Damaged content with a checksum that matches it, as an attacker could write.
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

// A whole folder in which one file is mutated. Only content that was saved is ever loaded.
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
}  // namespace uper::checkpoint
