#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace uper::checkpoint {

// Bounds on an untrusted JSON text, so that reading it takes bounded memory.
struct JsonLimits {
  std::size_t bytes = std::size_t{16} << 20;
  std::size_t values = 1'000'000;  // of all kinds, including keys
  std::size_t depth = 32;
};

// Parses a text. Throws Error(kCorrupt), its message starting with `what`, if it is not JSON, goes
// beyond the limits or names a key twice in one object.
nlohmann::json ParseJson(std::string_view text, const JsonLimits& limits, const std::string& what);

// Parses a whole file. Throws Error(kMissingData) if it cannot be read, otherwise as ParseJson().
nlohmann::json ReadJsonFile(const std::filesystem::path& path, const JsonLimits& limits = {});

// Member `key` of an object as a T. Throws Error(kCorrupt) if it is missing or of another type.
// Unsigned integers must be written as such: no sign, no fraction.
template <typename T>
T JsonMember(const nlohmann::json& object, const char* key, const std::string& what);

}  // namespace uper::checkpoint
