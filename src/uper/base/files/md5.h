#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace uper {

using Md5Digest = std::array<std::uint8_t, 16>;

// The MD5 digest (RFC 1321). It distinguishes files and detects damage, but not forgery.
Md5Digest Md5(std::span<const std::byte> bytes);

// 32 lower-case hexadecimal digits.
std::string Md5Text(const Md5Digest& digest);

}  // namespace uper
