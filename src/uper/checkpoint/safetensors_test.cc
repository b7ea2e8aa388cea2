#include "uper/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "uper/base/files/files_for_tests.h"
#include "uper/checkpoint/file_system.h"

namespace uper::checkpoint {
namespace {

// A file with this header and this many bytes of data.
std::vector<std::byte> FileWith(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  file += header + std::string(data_bytes, 'x');
  const auto bytes = BytesOfText(file);
  return {bytes.begin(), bytes.end()};
}

std::string Reason(const std::vector<std::byte>& file) {
  const Thrown thrown = Catch([&] { ParseSafetensors(file, "F"); });
  EXPECT_EQ(thrown.kind, ErrorKind::kCorrupt);
  EXPECT_TRUE(thrown.message.starts_with("F")) << thrown.message;
  return thrown.message;
}

std::string RefusedHeader(const std::string& header, std::size_t data_bytes = 4) {
  return Reason(FileWith(header, data_bytes));
}

TEST(SafetensorsTest, RoundTripOfAllElementsAndShapes) {
  const std::vector<float> floats = {1, -2.5F, 3e-40F, 0};
  const std::vector<double> doubles = {1e300};
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  const std::vector<std::uint64_t> words = {~std::uint64_t{0}};
  const std::vector<std::int32_t> none;
  TensorMap tensors;
  tensors["a/b.w:0"] = AsTensor<float>(floats, {2, 1, 2});
  tensors["scalar"] = AsTensor<double>(doubles, {});
  tensors["bytes"] = AsTensor<std::uint8_t>(bytes);
  tensors["words"] = AsTensor<std::uint64_t>(words);
  tensors["empty"] = AsTensor<std::int32_t>(none, {3, 0, 5});
  const std::vector<std::byte> file = EncodeSafetensors(tensors);
  const TensorMap read = ParseSafetensors(file, "F");
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(read.at(name).element, tensor.element);
    EXPECT_EQ(read.at(name).shape, tensor.shape);
    EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), read.at(name).bytes.begin(),
                           read.at(name).bytes.end()));
    // Aligned, relative to the file.
    const auto offset = static_cast<std::size_t>(read.at(name).bytes.data() - file.data());
    EXPECT_EQ(offset % ElementBytes(tensor.element), 0u) << name;
  }
  EXPECT_EQ(TensorValues<float>(read, "a/b.w:0"), floats);
  EXPECT_EQ(EncodeSafetensors(read), file);
  EXPECT_TRUE(ParseSafetensors(EncodeSafetensors({}), "F").empty());
}

TEST(SafetensorsTest, TypedAccessIsChecked) {
  const std::vector<float> floats = {1, 2};
  const std::vector<std::byte> file = EncodeSafetensors({{"w", AsTensor<float>(floats)}});
  const TensorMap read = ParseSafetensors(file, "F");
  std::vector<float> two(2);
  CopyTensor<float>(read, "w", two);
  EXPECT_EQ(two, floats);
  std::vector<float> three(3);
  EXPECT_EQ(Catch([&] { CopyTensor<float>(read, "w", three); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(Catch([&] { TensorValues<double>(read, "w"); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(Catch([&] { TensorValues<float>(read, "v"); }).kind, ErrorKind::kCorrupt);
}

TEST(SafetensorsTest, WhatCannotBeReadBackIsNotWritten) {
  const std::vector<float> floats = {1, 2};
  const auto encode = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    return Catch([&] { EncodeSafetensors({{name, AsTensor<float>(floats, std::move(shape))}}); })
        .kind;
  };
  EXPECT_EQ(encode("", {2}), ErrorKind::kInternal);
  EXPECT_EQ(encode("a b", {2}), ErrorKind::kInternal);
  EXPECT_EQ(encode("__metadata__", {2}), ErrorKind::kInternal);
  EXPECT_EQ(encode("w", {3}), ErrorKind::kInternal);
  EXPECT_EQ(encode("w", {1, 1, 1, 1, 1, 1, 1, 1, 2}), ErrorKind::kInternal);
}

TEST(SafetensorsTest, MalformedFilesAreRefused) {
  EXPECT_NE(Reason({}).find("too short"), std::string::npos);
  EXPECT_NE(Reason(std::vector<std::byte>(7)).find("too short"), std::string::npos);
  std::vector<std::byte> file(16, std::byte{0xFF});
  EXPECT_NE(Reason(file).find("too long"), std::string::npos);
  std::fill(file.begin(), file.end(), std::byte{0});
  file[0] = std::byte{9};
  EXPECT_NE(Reason(file).find("cut off"), std::string::npos);
  for (const char* header : {"", "{", "[]", "1", "null", "{\"w\": 1}", "{\"w\": {}}"}) {
    RefusedHeader(header, 0);
  }
}

TEST(SafetensorsTest, EveryRuleOfTheHeaderIsEnforced) {
  const auto entry = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::string good = entry("F32", "[1]", "[0,4]");
  EXPECT_NO_THROW(ParseSafetensors(FileWith("{\"w\":" + good + "}", 4), "F"));
  EXPECT_NO_THROW(
      ParseSafetensors(FileWith("{\"__metadata__\":{\"a\":\"b\"},\"w\":" + good + "}", 4), "F"));
  const std::string bad[] = {
      entry("F31", "[1]", "[0,4]"),                    // no such type
      entry("F32", "[1.0]", "[0,4]"),                  // no integer
      entry("F32", "[-1]", "[0,4]"),                   // negative
      entry("F32", "1", "[0,4]"),                      // no array
      entry("F32", "[2]", "[0,4]"),                    // wrong length
      entry("F32", "[1]", "[4,0]"),                    // backwards
      entry("F32", "[1]", "[0,8]"),                    // beyond the end
      entry("F32", "[1]", "[1,5]"),                    // beyond the end
      entry("F32", "[0]", "[0,0]"),                    // leaves a rest
      entry("F32", "[1]", "[0]"),                      // no range
      entry("F32", "[1]", "[0,4,4]"),                  // no range
      entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"),    // rank
      entry("F32", "[4611686018427387905]", "[0,4]"),  // times 4 is 4 modulo 2^64
      entry("F32", "[4294967296,4294967296,1]", "[0,4]"),
      "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}",
      "{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
  };
  for (const std::string& text : bad) RefusedHeader("{\"w\":" + text + "}");
  RefusedHeader("{\"w\":" + good + ",\"v\":" + good + "}");                               // overlap
  RefusedHeader("{\"w\":" + good + ",\"v\":" + entry("F32", "[1]", "[8,12]") + "}", 12);  // gap
  RefusedHeader("{\"w\":" + good + ",\"w\":" + good + "}");                               // twice
  for (const char* name : {"", "a b", "\\u0000", "../\\n", "\\u00e4"}) {
    RefusedHeader("{\"" + std::string(name) + "\":" + good + "}");
  }
  RefusedHeader("{\"" + std::string(201, 'a') + "\":" + good + "}");
}

TEST(SafetensorsTest, ThereMayBeManyTensorsButNotTooMany) {
  std::string header = "{";
  for (std::size_t i = 0; i <= kMaxTensors; ++i) {
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) +
              "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    if (i + 1 == kMaxTensors) {
      EXPECT_EQ(ParseSafetensors(FileWith(header + "}", 0), "F").size(), kMaxTensors);
    }
  }
  EXPECT_NE(RefusedHeader(header + "}", 0).find("too many"), std::string::npos);
}

// Leaves a file for a reader in another language.
TEST(SafetensorsTest, WritesASampleForOtherReaders) {
  const char* const target = std::getenv("UPER_SAMPLE_FOLDER");
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const std::vector<std::uint8_t> bytes = {7, 8, 9};
  const std::vector<double> doubles = {0.25};
  const std::vector<std::byte> file = EncodeSafetensors({{"w", AsTensor<float>(floats, {2, 3})},
                                                         {"b", AsTensor<std::uint8_t>(bytes)},
                                                         {"d", AsTensor<double>(doubles, {})}});
  EXPECT_EQ(file.size() % 4, 3u);  // 8 + header padded to 8 + 8 + 24 + 3
  if (target != nullptr) {
    PutFile(std::filesystem::path(target) / "sample.safetensors", TextOfBytes(file));
  }
}

}  // namespace
}  // namespace uper::checkpoint
