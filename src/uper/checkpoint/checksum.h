#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace uper::checkpoint {

// XXH3-128 of some bytes as 32 hexadecimal digits. It detects damage but not forgery.
std::string ChecksumOf(std::span<const std::byte> bytes);

// The same checksum for bytes that arrive in parts.
class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(const Checksummer&) = delete;
  Checksummer& operator=(const Checksummer&) = delete;

  void Add(std::span<const std::byte> bytes);
  // The checksum of all bytes added so far.
  std::string Value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace uper::checkpoint
