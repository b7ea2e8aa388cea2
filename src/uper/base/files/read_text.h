#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

namespace uper {

// The bytes of a file, or nothing if it cannot be read (it is missing, a folder, or protected).
// Reads at most `limit` + 1 bytes. A caller can thus refuse a file that is longer than `limit`
// without loading all of it.
std::optional<std::string> ReadText(const std::filesystem::path& path,
                                    std::size_t limit = std::numeric_limits<std::size_t>::max() -
                                                        1);

}  // namespace uper
