#pragma once

// A small but complete checkpoint for tests, different at every step.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "uper/checkpoint/checkpoint_store.h"

namespace uper::checkpoint {

inline constexpr const char* kExampleFolder = "checkpoints";
// Small enough that every kind of segment occurs.
inline constexpr CheckpointStoreOptions kExampleOptions{.segment_records = 16};

// A stream that looks like a replay memory: 20 new records per step, the newest `live` are kept.
inline RecordStream ExampleStream(std::uint64_t record_bytes, std::uint64_t next,
                                  std::uint64_t live) {
  const auto read = [record_bytes](std::uint64_t begin, std::uint64_t end,
                                   std::span<std::byte> out) {
    for (std::uint64_t id = begin; id < end; ++id) {
      for (std::uint64_t i = 0; i < record_bytes; ++i) {
        out[(id - begin) * record_bytes + i] =
            static_cast<std::byte>((id * 2654435761U + i * 40503U) >> 7);
      }
    }
  };
  return {.record_bytes = record_bytes,
          .first_id = next > live ? next - live : 0,
          .next_id = next,
          .read = read};
}

// Owns the memory that `content` views.
struct ExampleCheckpoint {
  explicit ExampleCheckpoint(int step) : weights(37), priorities(20 * step) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(i) * 0.5F + static_cast<float>(step);
    }
    for (std::size_t i = 0; i < priorities.size(); ++i)
      priorities[i] = 1.0 / static_cast<double>(i + 1 + 7 * step);
    content.info = {{"frames", 1000 * step}};
    content.document = {{"step", step}, {"position", std::uint64_t{0xFFFFFFFFFFFFFFFF}}};
    content.tensors["parameters"]["online/w"] = AsTensor<float>(weights);
    content.tensors["replay"]["priorities"] = AsTensor<double>(priorities);
    const auto next = std::uint64_t{20} * static_cast<std::uint64_t>(step);
    content.streams["transitions"] = ExampleStream(13, next, 50);
    content.streams["frames"] = ExampleStream(29, next + 7, 70);
  }
  ExampleCheckpoint(const ExampleCheckpoint&) = delete;
  ExampleCheckpoint& operator=(const ExampleCheckpoint&) = delete;

  std::vector<float> weights;
  std::vector<double> priorities;
  CheckpointContent content;
};

// The live records of a stream as a checkpoint holds them.
inline std::vector<std::byte> RecordsOf(const LoadedCheckpoint& loaded, const std::string& name) {
  std::vector<std::byte> all;
  std::uint64_t expected = loaded.Stream(name).first_id;
  loaded.ReadStream(
      name, [&](std::uint64_t begin, std::uint64_t end, std::span<const std::byte> records) {
        EXPECT_EQ(begin, expected);
        EXPECT_EQ(records.size(), (end - begin) * loaded.Stream(name).record_bytes);
        expected = end;
        all.insert(all.end(), records.begin(), records.end());
      });
  EXPECT_EQ(expected, loaded.Stream(name).next_id);
  return all;
}

// Whether `loaded` equals the example of that step, byte for byte.
inline bool IsExample(const LoadedCheckpoint& loaded, int step) {
  const ExampleCheckpoint example(step);
  bool equal = loaded.manifest.info == example.content.info &&
               loaded.document == example.content.document &&
               TensorValues<float>(loaded.Tensors("parameters"), "online/w") == example.weights &&
               TensorValues<double>(loaded.Tensors("replay"), "priorities") == example.priorities;
  for (const auto& [name, stream] : example.content.streams) {
    std::vector<std::byte> expected((stream.next_id - stream.first_id) * stream.record_bytes);
    stream.read(stream.first_id, stream.next_id, expected);
    equal = equal && loaded.Stream(name).first_id == stream.first_id &&
            RecordsOf(loaded, name) == expected;
  }
  return equal;
}

inline int StepOf(const LoadedCheckpoint& loaded) { return loaded.document.at("step").get<int>(); }

// A disk with the checkpoints of steps 1 to `steps` saved one after the other.
inline void SaveExamples(FileSystem& files, int steps) {
  CheckpointStore store(kExampleFolder, kExampleOptions, files);
  store.Load();
  for (int step = 1; step <= steps; ++step) {
    ASSERT_TRUE(store.Save(ExampleCheckpoint(step).content).saved);
  }
}

}  // namespace uper::checkpoint
