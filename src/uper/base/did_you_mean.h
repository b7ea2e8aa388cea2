#pragma once

#include <span>
#include <string>
#include <string_view>

namespace uper {

// The candidate that was probably meant, or an empty text. Counted are slips in the part behind the
// last '/' or '.' (insertions, deletions, substitutions and swaps of neighbors), upper and lower
// case alike; names that begin with that part count, too, and the same part behind another front.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

// " (did you mean 'x'?)" for an error message, or an empty text.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace uper
