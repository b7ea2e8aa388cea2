#pragma once

#include <span>
#include <string>
#include <string_view>

namespace uper {

// The candidate that the user probably meant, or an empty text. It counts the slips (insertions,
// deletions, substitutions, swaps of neighbors) in the part after the last '/' or '.' and ignores
// case. Candidates that begin with that part match too, and so does the same part after another
// prefix.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

// " (did you mean 'x'?)" for an error message, or an empty text.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace uper
