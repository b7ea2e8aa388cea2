#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uper {

// The saved state of a replay memory: a sequence of named blocks, each with a checksum. Blocks are
// written and read piece by piece, so that a memory of gigabytes needs no copy of itself.
//
//   file   = "UPERMEM1", block..., block "end" of 0 bytes
//   block  = length of the name (u32), name, number of bytes (u64), bytes, CRC-32C of all these
//   (u32)
class StateWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  explicit StateWriter(Sink sink);

  // A block in pieces. REQUIRES: the pieces between Begin() and End() have `bytes` bytes.
  void Begin(std::string_view name, std::uint64_t bytes);
  void Append(std::span<const std::byte> piece);
  void End();
  // A whole block.
  void Block(std::string_view name, std::span<const std::byte> bytes);
  // The last block. REQUIRES: nothing is written afterwards.
  void Finish() { Block("end", {}); }

 private:
  void Put(std::span<const std::byte> bytes);

  Sink sink_;
  std::uint64_t left_ = 0;  // of the block
  std::uint32_t crc_ = 0;
};

// Reads blocks in the order in which they were written. Every function throws Error(kCorrupt), with
// the name of the source, if the bytes are not what a StateWriter wrote.
class StateReader {
 public:
  // Fills the whole span; throws if that is not possible.
  using Source = std::function<void(std::span<std::byte>)>;

  // `bytes`: of the source. No block can be longer.
  StateReader(std::string name, std::uint64_t bytes, Source source);

  // Begins the next block, which must have this name; returns its number of bytes.
  std::uint64_t Begin(std::string_view name);
  void Read(std::span<std::byte> piece);
  // Checks that the block has been read and that its checksum is right.
  void End();
  // A whole block of at most `most` bytes.
  std::vector<std::byte> Block(std::string_view name, std::uint64_t most);
  // Checks that the last block comes next and that nothing follows it.
  void Finish();

  [[noreturn]] void Fail(const std::string& why) const;

 private:
  void Take(std::span<std::byte> bytes);

  std::string name_;
  std::uint64_t rest_;  // of the source
  Source source_;
  std::uint64_t left_ = 0;  // of the block
  std::uint32_t crc_ = 0;
};

// Writes a state to a file that appears under its name only when it is complete. Throws
// Error(kResources) if the disk is full, Error(kUsage) if the file cannot be written.
void WriteStateFile(const std::filesystem::path& path,
                    const std::function<void(StateWriter&)>& write);
// Reads it. Throws Error(kMissingData) if there is no regular file of that name.
void ReadStateFile(const std::filesystem::path& path,
                   const std::function<void(StateReader&)>& read);

// The same in memory.
std::vector<std::byte> StateBytes(const std::function<void(StateWriter&)>& write);
void ReadStateBytes(std::span<const std::byte> bytes,
                    const std::function<void(StateReader&)>& read);

}  // namespace uper
