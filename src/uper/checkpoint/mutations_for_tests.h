#pragma once

// Mutations of small files, for tests of readers.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "uper/base/allocations_for_tests.h"
#include "uper/base/error.h"
#include "uper/base/files/files_for_tests.h"
#include "uper/base/random.h"

namespace uper::checkpoint {

inline constexpr int kMutations = 3000 / kStride;

// The text with a few bytes changed, removed, repeated or replaced by values that often break
// readers.
inline std::string Mutated(std::string text, RandomStream& random) {
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
inline int Fuzz(const std::string& seed, const std::function<void(const std::string&)>& read,
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
  EXPECT_GT(largest_allocation, 0u);  // allocations are counted
  EXPECT_LE(largest_allocation, memory_limit);
  return refused;
}

}  // namespace uper::checkpoint
