#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace uper {

using Md5Digest = std::array<std::uint8_t, 16>;

// The MD5 digest (RFC 1321). It tells files apart and finds damage; it protects against nobody.
Md5Digest Md5(std::span<const std::byte> bytes);

// 32 lower-case hexadecimal digits.
std::string Md5Text(const Md5Digest& digest);

}  // namespace uper
