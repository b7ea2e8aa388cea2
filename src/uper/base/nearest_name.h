#pragma once

#include <span>
#include <string>
#include <string_view>

namespace uper {

// The candidate with the smallest edit distance to `name` (insertions, deletions, substitutions and
// swaps of neighbours count 1 each), or an empty text when even that one is too far to be meant.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

// " (did you mean 'x'?)" for an error message, or an empty text.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace uper
