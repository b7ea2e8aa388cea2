#include "uper/base/did_you_mean.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace uper {
namespace {

constexpr std::size_t kTooMany = static_cast<std::size_t>(-1);

// Optimal string alignment distance.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> distance(a.size() + 1,
                                                 std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) distance[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) distance[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// The part that users remember: the last one of `suite/game` and of `section.key`.
std::string_view LastPart(std::string_view name) {
  return name.substr(name.find_last_of("/.") + 1);  // npos + 1 is 0
}

// Slips in the written text if it stands for the beginning of the candidate. Only a long text may
// have one.
std::size_t SlipsOfBeginning(std::string_view part, std::string_view candidate) {
  constexpr std::size_t kShortest = 3, kLong = 5;
  if (part.size() >= kShortest && candidate.starts_with(part)) return 0;
  if (part.size() < kLong) return kTooMany;
  for (std::size_t size = part.size() - 1; size <= part.size() + 1; ++size) {
    if (EditDistance(part, candidate.substr(0, size)) == 1) return 1;
  }
  return kTooMany;
}

// Twice the slips between two names in lower case. To write only the beginning of a name is half a
// slip.
std::size_t HalfSlips(std::string_view name, std::string_view candidate) {
  const std::string_view part = LastPart(name), other = LastPart(candidate);
  const std::size_t most = std::max<std::size_t>(1, part.size() / 3);  // most slips of a match
  const std::size_t distance = EditDistance(part, other);
  const std::size_t beginning = SlipsOfBeginning(part, other);
  if (distance > most && beginning == kTooMany) return kTooMany;
  const std::size_t slips = distance <= most ? 2 * distance : 2 * beginning + 1;
  const std::size_t front = EditDistance(name.substr(0, name.size() - part.size()),
                                         candidate.substr(0, candidate.size() - other.size()));
  return front == 0 ? slips : slips + 2 * most + front;  // another prefix comes last
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string> candidates) {
  std::string nearest;
  std::size_t best = kTooMany;
  const std::string lower = InLowerCase(name);
  for (const std::string& candidate : candidates) {
    const std::size_t slips = HalfSlips(lower, InLowerCase(candidate));
    if (slips < best) {
      best = slips;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

}  // namespace uper
